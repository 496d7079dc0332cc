"""What `outbox workflow explain` says of each rule of a workflow; `checks/` decides them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXPLANATIONS: Final[Mapping[str, tuple[str, str]]] = {
    # --- a workflow as a whole
    "wrong_kind": (
        "An argument of the workflow is of a kind that nothing can be read from.",
        "Write what the message shows in its place.",
    ),
    "workflow_name": (
        "The name stands in rows, in event types and in file names.",
        "Use lower-case words joined by `_`.",
    ),
    "version": (
        (
            "An instance follows the routes of the version it started with, or was moved to, so "
            "versions are counted."
        ),
        "Count versions from 1.",
    ),
    "starts_on": (
        "A workflow starts with a domain event; those of tasks are its own.",
        "Name a domain event; types that begin with 'workflow:' belong to tasks.",
    ),
    "event_type": (
        "A workflow ends with a domain event that others may wait for.",
        "Name the event; types that begin with 'workflow:' belong to tasks.",
    ),
    "start": (
        "The payload of the start event is parsed into a class with fields.",
        "Give a dataclass or a pydantic model.",
    ),
    "start_fields": (
        "Identifiers use `workflow`, `task`, `instance` and `visit` for something else.",
        "Rename them in the class; an alias may keep the name in the payload.",
    ),
    "start_no_schema": (
        "Whether a payload starts an instance is decided by JSON Schema, without the class.",
        (
            "Use types that JSON has, such as texts, numbers and lists, and patterns that both "
            "Python's `re` and pydantic's own engine read."
        ),
    ),
    "instance_malformed": (
        "The template cannot be read.",
        "Write text with fields in braces, such as 'refund-{order_id}'.",
    ),
    "instance_unknown_field": (
        "The template uses what the start event does not have.",
        "Use `event_id` and fields of the start event.",
    ),
    "instance_no_text": (
        "The text of such a value may differ from reader to reader, and so would the instance.",
        "Use a field whose text is the same for every reader: a text or a whole number.",
    ),
    "routes": (
        "A workflow without routes does nothing.",
        "Add `route(Task, {...})` for each task.",
    ),
    "route_no_task": (
        "A route is of a task, named by its class.",
        "Write the class itself, `route(Task, {...})`: no text, no object of it.",
    ),
    "route_twice": (
        "Of two routes of one task nobody knows which counts.",
        "Put all outcomes of a task into one route.",
    ),
    "task_name_twice": (
        "Tasks are told apart by their names, in rows and in identifiers.",
        "Rename one of two classes of one name.",
    ),
    "first_no_task": (
        "A workflow begins with a task, named by its class.",
        "Write the class itself: no text, and no object of it.",
    ),
    "first_without_route": (
        "What the first task decides would lead nowhere.",
        "Add a route for the first task.",
    ),
    # --- one task
    "no_outcomes": (
        "A task never fails: whatever happens to it is an outcome with a name.",
        "Put a subclass of Outcome with members into the brackets of its base class.",
    ),
    "outcome_leads_nowhere": (
        "An instance that decides it would stand still for ever.",
        "Add it to the route of the task.",
    ),
    "outcome_name": (
        "Outcomes stand in rows and in the log.",
        "Use lower-case words joined by `_`.",
    ),
    "unknown_outcome": (
        "The route names what the task cannot decide.",
        "Name outcomes of this task only.",
    ),
    "target_without_route": (
        "What the next task decides would lead nowhere.",
        "Add a route for every task that is led to.",
    ),
    "target_no_task": (
        "An outcome leads to a task or to an event that ends the workflow.",
        "Write the class of a task, or `Event(event_type=...)`.",
    ),
    "target_of_another_workflow": (
        "Tasks of two workflows have different start events and identifiers.",
        (
            "Use the class that has a route here. One hands over to another workflow by ending "
            "with an Event that it starts on."
        ),
    ),
    "no_category": (
        "What the third party can promise decides what is done after a failure.",
        "Subclass Idempotent, PessimisticLock, OptimisticLock, BlackBox or ToDo.",
    ),
    "functions_missing": (
        "The algorithm of the category calls them.",
        "Define the functions that its category asks for.",
    ),
    "attribute_misspelt": (
        "A name that nothing reads would silently do nothing.",
        "Write the name that is meant; an attribute of your own needs a name that differs more.",
    ),
    "attribute_of_another_category": (
        "The algorithm of this category does not read it.",
        "Remove it, or choose the category that it belongs to.",
    ),
    "expires_missing": (
        "A wait without an end is decided on, not forgotten.",
        "Write `expires = timedelta(...)`, or `Never(why=...)`.",
    ),
    "expires_no_duration": (
        "Only a duration can be waited for.",
        "Write `expires = timedelta(...)`, or `Never(why=...)`.",
    ),
    "expires_out_of_range": (
        "Beyond ten years it is a slip of the pen.",
        "It must be more than 0 and at most ten years; for longer write `Never(why=...)`.",
    ),
    "expires_never_why": (
        "Somebody will ask why it waits for ever.",
        "Write down why.",
    ),
    "third_party_missing": (
        "Rates, pauses and faults are counted by third party.",
        "Write `third_party = '...'`, such as 'warehouse'.",
    ),
    "third_party_name": (
        "The table [third_parties.NAME] of outbox.toml is found by it.",
        "Use lower-case words joined by `_`.",
    ),
    "time_limit_missing": (
        "An attempt that hangs is ended, and somebody has to say when.",
        "Write `time_limit = timedelta(...)`.",
    ),
    "time_limit_no_duration": (
        "Only a duration can be waited for.",
        "Write `time_limit = timedelta(...)`.",
    ),
    "time_limit_out_of_range": (
        "An attempt takes some time, and no years.",
        "It must be more than 0 and at most ten years.",
    ),
    "time_limit_too_long": (
        "A claim that runs out before its attempt lets two attempts run at once.",
        (
            "Shorten the limit, or give the workflow a longer `lease`: a claim must outlast its "
            "attempt."
        ),
    ),
    "uncertainty_leads_nowhere": (
        "After a time-out nobody knows whether it was done, and that is never guessed.",
        "Write `when_uncertain`, an outcome or DEFAULT_EXIT.",
    ),
    "settles_within_missing": (
        "Whoever looks up before an earlier request has landed acts a second time.",
        "Ask the third party, and write `settles_within = timedelta(...)`.",
    ),
    "settles_within_out_of_range": (
        "A request lands some time after it was sent.",
        "It must be more than 0 and at most ten years.",
    ),
    "performance_reason_missing": (
        "An optimistic lock is harder to get right, and worth it only where it is needed.",
        "Write `why_not_pessimistic`, or make it a PessimisticLock.",
    ),
    "key_valid_for_missing": (
        "A key that was forgotten protects from nothing.",
        "Write `key_valid_for = timedelta(...)`, or `Never(why=...)` if it never forgets.",
    ),
    "key_valid_for_never_why": (
        "Somebody will ask who promised it.",
        "Write down why.",
    ),
    "key_valid_too_short": (
        "The key would be forgotten while an attempt is still under way.",
        "Shorten time_limit or settles_within, or choose another category.",
    ),
    "compromise_missing": (
        "For a black box there is no technical answer: the business decides.",
        "Write `compromise = AtMostOnce()`, `AtLeastOnce()`, `UpTo(n)` or `AskHuman()`.",
    ),
    "compromise_no_object": (
        "A class or a word decides nothing.",
        "Write an object such as `UpTo(2)`, not its class and not a word.",
    ),
    "up_to_too_few": (
        "Up to one execution is at most once.",
        "Write AtMostOnce(), or a number from 2.",
    ),
    "concerns_missing": (
        "A compromise follows from the checklist of the business.",
        "Write `concerns = Concerns(...)`; `outbox workflow new` asks for it.",
    ),
    "concerns_no_members": (
        "The lists are closed, so that answers can be compared.",
        "Write members such as `Necessity.MUST`, not words; `risks` is a frozenset of them.",
    ),
    "concerns_incomplete": (
        "Whoever reads the compromise later asks who decided it, and why.",
        "Fill in decided_by, why and at least one risk.",
    ),
    "roles_missing": (
        "Nobody may answer, so it would always expire.",
        "Write `roles = frozenset({...})`.",
    ),
    "roles_no_set": (
        "A text would be read letter by letter.",
        'Write a set of names: `roles = frozenset({"office"})`.',
    ),
    "role_name": (
        "A row joins the roles of a task by `|`.",
        "Give each role a name without `|` and without blanks around it.",
    ),
    "contract_missing": (
        "An answer is checked before anybody decides by it.",
        "Write `contract = Model`, a pydantic model.",
    ),
    "contract_no_schema": (
        "Whoever answers is told by JSON Schema what an answer looks like.",
        "Use types that JSON has: texts, numbers, lists, models of them.",
    ),
    "not_by_no_to_dos": (
        "Four eyes compare who has answered two items of one instance; nobody answers other tasks.",
        "Write a tuple of other To-Do classes of the same workflow: `not_by = (Approve,)`.",
    ),
    "not_by_no_names": (
        "Four eyes tell people apart by their names; who has a link, and a topic, have none.",
        "Leave out `sends_link` and `topic` of a task that `not_by` is about, or `not_by`.",
    ),
    "topic_name": (
        "Answers come by a topic of Kafka of this name; that of their dead letters is made of it.",
        'Write `topic = "orders.answers"`: up to 180 letters, digits, `.`, `_` and `-`.',
    ),
    "due_out_of_range": (
        "A reminder comes after some time, and within years.",
        "It must be more than 0 and at most ten years.",
    ),
    "due_after_expiry": (
        "Nobody can answer any more when they are reminded.",
        "Let it expire later, or be due sooner.",
    ),
    "neither_yes_nor_no": (
        "What is neither yes nor no would be taken for one of them.",
        "Write True or False; in a row yes, or nothing.",
    ),
    "link_in_no_event": (
        "A link that no event carries gets to nobody.",
        "Write `due = timedelta(...)` or `tells_opened = True`.",
    ),
    "identifier_malformed": (
        "The template cannot be read.",
        "Write text with fields in braces, such as 'refund-{order_id}'.",
    ),
    "identifier_unknown_field": (
        "The template uses what the start event does not have.",
        "Use `workflow`, `task`, `instance`, `visit` and fields of the start event.",
    ),
    "identifier_no_text": (
        "The text of such a value may differ from reader to reader, and so would the key.",
        "Use a field whose text is the same for every reader: a text or a whole number.",
    ),
    "identifier_reserved": (
        "The id of the event that ends an instance begins so, and a task could take it.",
        "Let it begin with something else than 'workflow:'.",
    ),
    # --- where it leads
    "fault_leads_nowhere": (
        "An instance whose task certainly was not done would stand still.",
        "Write `when_faulted`, or give the workflow a `default_exit`.",
    ),
    "expiry_leads_nowhere": (
        "An instance whose task has expired would stand still.",
        "Write `when_expired`, or give the workflow a `default_exit`.",
    ),
    "wrong_outcome": (
        "What is declared for a fault, an expiry or an uncertainty is an outcome of this task.",
        "Choose an outcome of this task, or DEFAULT_EXIT.",
    ),
    "human_without_to_do": (
        "The compromise says that a person decides, and none is asked.",
        "Let `when_uncertain` be an outcome whose route is a ToDo.",
    ),
    "nothing_leads_here": (
        "The task would never run: a route to it was forgotten, or it is not needed.",
        "Let an outcome lead to it, or remove its route.",
    ),
    "no_way_out": (
        (
            "An instance must not go round for ever, whatever happens again and again: "
            "a refusal, a time-out, nobody who answers, or that all goes well."
        ),
        (
            "Let one of what the message names lead out of the loop; to go round a few times, let "
            "`on_fault` choose the way back by `trigger.visit`."
        ),
    ),
    "loop_without_visit": (
        "An identifier is used once: the second visit would be taken for the first.",
        "Add `{visit}`.",
    ),
    "loop_never_expires": (
        "On a loop, what never expires holds up every later visit.",
        "Write `expires = timedelta(...)`.",
    ),
    "loop_answers_look_alike": (
        "A late answer to one visit would count for the next.",
        "Name one by `told_apart_by`, such as the id of the payment.",
    ),
    "identifiers_collide": (
        "An identifier is the key at the third party: two tasks would share one effect.",
        "Let one begin with text of its own: an identifier belongs to one task.",
    ),
    "at_least_once_for_ever": (
        "A warning: it is tried again without end.",
        "Let it expire, unless that is meant.",
    ),
    "uncertainty_expires": (
        (
            "A warning: nobody knows whether it was done, a person is asked, and if nobody "
            "answers the default exit follows, as if somebody had decided."
        ),
        "Let the To-Do never expire, or write its `when_expired`.",
    ),
    "cell_not_kept": (
        (
            "Rows of workflows are kept in seeds, and dbt does not read every cell as it was "
            "written: `null` is an empty one."
        ),
        "Write something else.",
    ),
    # --- several workflows
    "workflow_twice": (
        "Workflows are told apart by their names.",
        "Rename one of two workflows of one name.",
    ),
    "workflows_go_in_circles": (
        "Each of them would start the next one, for ever.",
        (
            "Let one of the workflows that start each other end with an event type that starts "
            "none of the others."
        ),
    ),
    # --- rows, as dbt checks them
    "no_such_workflow": (
        "A row is of a workflow that railway_workflows does not have.",
        "Add its row, or remove this one.",
    ),
    "no_such_task": (
        "A row is of a task that railway_tasks does not have.",
        "Add its row, or remove this one.",
    ),
    "no_such_column": (
        "Nobody reads a column of this name: it may be misspelt.",
        "Rename it to one of the columns that the message lists, or remove it.",
    ),
    "type_guessed": (
        (
            "dbt guesses the types of a seed's columns where nothing names them, and a text that "
            "looks like a number, a date or `true` changes."
        ),
        "Name the types in a yml, as `outbox workflow build` does in seeds/railway.yml.",
    ),
    "open_instances": (
        (
            "An instance follows the routes of the version it started with, or was moved to. At a "
            "task that the rows do not have any more, or have in another category, it would wait "
            "for ever: nobody has its code."
        ),
        (
            "Build with the task as it was until its instances have ended, or end or move them "
            "with `outbox workflow cancel` or `outbox workflow migrate`."
        ),
    ),
    "rows_changed": (
        (
            "The rows have a hash, and are not those of which it was made: they were changed by "
            "hand, or rows of two builds were mixed."
        ),
        (
            "Run `outbox workflow build` again; to go on by hand, take its module out of "
            "`[workflows] modules` and empty the column hash."
        ),
    ),
    "task_name": (
        "The name stands in rows, in event types and in identifiers.",
        "Use lower-case words joined by `_`.",
    ),
    "lease": (
        "A claim of a task lasts that long, so every row of a workflow says it.",
        "Write a number of seconds, such as 120.",
    ),
    "expires_and_never": (
        "It expires, or it never does.",
        "Empty one of the two columns.",
    ),
    "key_valid_for_and_never": (
        "A key is forgotten some time, or never.",
        "Empty one of the two columns.",
    ),
    "settles_within_no_duration": (
        "Only a duration can be waited for.",
        "Write `settles_within = timedelta(...)`; in a row, a number of seconds.",
    ),
    "key_valid_for_no_duration": (
        "Only a duration can be waited for.",
        "Write `key_valid_for = timedelta(...)`; in a row, a number of seconds.",
    ),
    "key_valid_for_out_of_range": (
        "Beyond ten years it is a slip of the pen.",
        "It must be more than 0 and at most ten years; for longer write `Never(why=...)`.",
    ),
    "due_no_duration": (
        "Only a duration can be waited for.",
        "Write `due = timedelta(...)`; in a row, a number of seconds.",
    ),
    "contract_of_another_version": (
        "An answer would be checked against another version of the workflow.",
        "Write the version of the workflow into railway_contracts.",
    ),
    "no_cause": (
        "A row of a route says what happened to the task.",
        "Write decided, faulted, expired or uncertain.",
    ),
    "never_happens": (
        (
            "A To-Do calls nobody, so it is neither faulted nor uncertain; what never expires is "
            "never expired."
        ),
        "Remove the row.",
    ),
    "two_targets": (
        "An outcome leads to one task or to one event.",
        "Empty to_task or to_event.",
    ),
    "wrong_exit": (
        "Without an outcome a fault, an expiry or an uncertainty leads to the default exit.",
        "Name an outcome, or write the default exit of the workflow.",
    ),
}
"""By name: why there is the rule, and what to do."""
