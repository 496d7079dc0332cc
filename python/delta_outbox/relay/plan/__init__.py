"""What may be claimed next: a window of open deliveries, listed once and then followed.

- arrivals: new events, and how far into a backlog something has been tried
- freshness: the views are kept fresh while a relay runs
- lane_share: which lanes a relay takes, where there are several, and what is open on the others
- left_out: what the window leaves out because it has to wait
- listing: lists what is open, from a read view
- others_claims: what others had claimed as it was listed, and how it comes back
- plan: what is planned of the logs as they were: the window, and what it leaves out
- planning: the planner: when to poll, whether to follow or to list
- standby: whether a relay leaves the only lane to another one
- timing: when a relay polls again
- window: what is eligible at an instant, and claims cut from it; pure
"""
