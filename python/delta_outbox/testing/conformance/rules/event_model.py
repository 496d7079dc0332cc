"""The rules of the event model."""

from __future__ import annotations

from typing import Final

from delta_outbox.testing.conformance.checks import (
    budget,
    claiming,
    content,
    ending,
    identity,
    lease,
    operators,
    order,
)
from delta_outbox.testing.conformance.rules.table import MAY, MUST, MUST_NOT, SHOULD, numbered

EVENT_MODEL: Final = numbered(
    "E",
    (
        MUST,
        "An event has event_id, event_type, payload, state and created_at.",
        content.the_required_fields_are_there,
    ),
    # event_id
    (
        MUST,
        "event_id is unique within the store.",
        identity.an_event_id_is_unique,
        "The first row of an id in arrival order is the event; later ones change nothing.",
    ),
    (MUST, "event_id is immutable.", content.event_id_never_changes),
    (
        SHOULD,
        "event_id has a globally unique format.",
        identity.uuid_and_ulid_are_kept,
        "The producer chooses; every such format is kept as it is.",
    ),
    # event_type
    (MUST, "event_type is a stable identifier.", content.event_type_never_changes),
    (MUST, "event_type is immutable.", content.event_type_never_changes),
    (
        MUST_NOT,
        "event_type does not depend on the transport.",
        content.event_type_is_the_same_whatever_the_destination,
    ),
    # payload
    (MAY, "payload is any data.", content.any_bytes_are_delivered_as_they_are, "Bytes."),
    (MUST, "payload is opaque.", content.any_bytes_are_delivered_as_they_are),
    (MUST_NOT, "payload is not modified after persistence.", content.payload_never_changes),
    # state
    (MUST, "state is one of the four.", ending.states_are_the_four),
    (
        MUST,
        "state is managed by the relay along the lifecycle.",
        content.a_new_event_is_pending_until_it_is_claimed,
    ),
    # created_at
    (MUST, "created_at is set when the event is persisted.", content.created_at_is_set_once),
    (MUST, "created_at is immutable.", content.created_at_is_set_once),
    # keys
    (
        MAY,
        "The publisher uses partition_key.",
        content.the_key_reaches_the_publisher,
        "Under strict order the ordering key routes, else the partition key.",
    ),
    (
        MUST,
        "Events of an ordering key are processed in order.",
        order.a_key_is_sent_in_order,
        "Arrival order. partition_key orders nothing (T-24).",
    ),
    # metadata
    (MAY, "metadata holds what producers like to note.", content.metadata_is_kept),
    (
        MUST_NOT,
        "metadata does not affect delivery.",
        content.metadata_does_not_change_delivery,
        "Not at all: no exception is defined.",
    ),
    (
        MUST_NOT,
        "metadata is not taken to reach the outside.",
        content.metadata_does_not_leave,
        "It never does.",
    ),
    (SHOULD, "metadata stores an internal trace context.", content.metadata_is_kept),
    # headers
    (MUST, "headers are part of the publish operation.", content.headers_are_sent_as_they_are),
    (
        MUST,
        "headers are preserved as they are.",
        content.headers_are_sent_as_they_are,
        "Names that begin with outbox- may be added.",
    ),
    (MAY, "headers are empty.", content.headers_may_be_empty),
    # attempts
    (
        MUST,
        "attempts only grows.",
        ending.attempts_never_go_down,
        "Within a lifecycle; a replay begins another one.",
    ),
    (
        MUST,
        "attempts is incremented before each attempt.",
        ending.attempts_count_before_the_attempt,
    ),
    # last_error
    (MAY, "last_error holds a message.", budget.last_error_follows_each_failure),
    (SHOULD, "last_error is updated on failure.", ending.a_failure_is_kept_as_last_error),
    # available_at
    (
        MAY,
        "available_at schedules and delays.",
        claiming.a_scheduled_event_is_eligible_when_its_time_has_come,
        "The producer's time schedules the first delivery; a retry sets its own.",
    ),
    (
        MUST_NOT,
        "Nothing is claimed before available_at.",
        operators.a_kill_waits_for_the_time,
        "Not even to be killed.",
    ),
    (
        MAY,
        "An expired lease overrides available_at.",
        lease.an_expired_claim_waits_for_nothing,
        "It makes the event eligible at once.",
    ),
    # claimed_at, claimed_by
    (
        MUST,
        "claimed_at is set when the event becomes CLAIMED.",
        claiming.claimed_at_is_the_time_of_the_claim,
    ),
    (MAY, "claimed_at serves leases.", lease.a_claim_lasts_as_long_as_its_lease),
    (
        MUST,
        "claimed_at is cleared when the event leaves CLAIMED.",
        lease.an_expired_claim_leaves_no_trace_of_its_owner,
    ),
    (
        SHOULD,
        "claimed_by is set when the event becomes CLAIMED.",
        claiming.claimed_by_names_the_relay,
    ),
    (
        SHOULD,
        "claimed_by and claimed_at fence.",
        lease.a_stale_success_counts_for_nothing,
        "The claim_id fences, for two workers may share a name.",
    ),
    # published_at
    (
        MUST,
        "published_at is set when the event becomes PUBLISHED.",
        ending.published_at_is_the_time_of_the_success,
    ),
    (
        MUST_NOT,
        "published_at is not modified afterwards.",
        ending.published_at_never_changes,
        "Within a lifecycle; a replay clears it, the record keeps the old one.",
    ),
    # Mutability and consistency
    (
        MUST_NOT,
        "Id, type, keys, payload, headers and created_at do not change.",
        content.immutable_fields_never_change,
    ),
    (MUST, "State follows the lifecycle.", lease.transitions_stay_legal_when_workers_die),
    (MUST_NOT, "Invalid transitions do not occur.", ending.an_ended_claim_cannot_be_ended_again),
    (
        MUST,
        "claimed_at is set if and only if CLAIMED.",
        claiming.claimed_at_is_set_exactly_while_claimed,
    ),
    (
        MUST,
        "published_at is set if and only if PUBLISHED.",
        claiming.published_at_is_set_exactly_while_published,
    ),
    (MUST, "claimed_by is set when CLAIMED.", claiming.claimed_by_is_set_while_claimed),
    # Identity and delivery
    (
        MAY,
        "Consumers recognise duplicates by event_id.",
        content.every_attempt_carries_the_same_identity,
        "By event_id, after a replay by event_id and lifecycle.",
    ),
    (
        MAY,
        "Events are delivered more than once.",
        lease.it_may_be_sent_more_than_once,
        "At least once.",
    ),
    (
        MUST,
        "Stronger guarantees document conditions, limits and failures.",
        "A rule for documents. We claim at least once; the README says what is not promised.",
    ),
    (MUST_NOT, "More fields do not violate order.", order.every_key_ends_in_the_end),
    (
        MUST_NOT,
        "More fields do not violate the core fields.",
        operators.a_replay_clears_published_at,
        "lifecycle counts replays; published_at belongs to one lifecycle.",
    ),
)
