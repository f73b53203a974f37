"""Every threshold of the diagnosis, each with its reason. Starting values of diagnosis.md unless said."""

from typing import Final

# --- shares of the user's time
SHARE_SUPPORT: Final = 0.3  # diagnosis.md 4: below it a wait is not what the user feels
SHARE_LIKELY: Final = 0.5  # the larger half of the time
SHARES_ROUND: Final = 0.05  # shares of one time may add up to so much more than all of it: each has its own counter
REASONING_SHARE: Final = 0.4  # diagnosis.md 4, hidden reasoning
RESIDUAL_LIMIT: Final = 0.3  # time in no known phase: then no label is surer than "possible"

# --- progress
TAIL_SECONDS: Final = 10.0  # a standstill this long at the end of a window: no verdict on its speed is sure any more
STALL_SECONDS: Final = 20.0  # gate 2: one long prefill still moves steps or prompt tokens within it
DIAL_MINIMUM: Final = 5  # observations below which a mean carries no evidence
WEAK_BELOW: Final = 20  # a mean of 5 to 20 observations counts with strength 1
QUANTILE_MINIMUM: Final = 60  # for a p95

# --- slow against what
SLOWER_THAN_USUAL: Final = 1.5  # ratio to a reference at a comparable batch; 14 % more at a larger batch is normal
MIXED_LOAD_SLOWS: Final = 2.0  # live vLLM: 13 ms alone, 19 ms with a prefill every half second; no fault in either
BATCH_GREW: Final = 1.5  # running this many times its reference explains a slower token by itself
JUST_STARTED: Final = 600.0  # seconds: a rollout is watched for as long; before that a process has no usual speed
UNCHANGED: Final = 1.2  # within 20 % of its reference a value is "as usual"

PATIENCE_S: Final = 15.0  # a mean wait this long drives people and default time-outs (Envoy: 15 s) away by itself
FEW_PREEMPTIONS: Final = 3  # below it chance decides which request was put back
FIRST_TOKEN_FELT: Final = 1.0  # seconds: a sooner first token is no complaint, however much sooner it once came

# --- batch
LARGE_BATCH: Final = 8.0  # running requests from which the batch may have grown enough to explain a slower token
BATCH_SLOWS: Final = (
    4.0  # a full batch's step takes at most about so many times a single sequence's (mixture of experts)
)
FLAT: Final = 0.1  # a full batch is read one or two short of its limit: gauges are taken after finished requests leave

# --- KV cache
LITTLE_WAITS: Final = 0.1  # share of all time inside the engine below which a queue is no loss
KV_FULL: Final = 0.9  # naming rule 4a: with requests waiting, KV binds from here
KV_HIGH: Final = 0.7  # room for few more sequences; a head of the queue that needs more than the rest waits
KV_LOW: Final = 0.5  # below it KV is not what a request waits for
PREEMPTIONS_PER_FINISHED: Final = 0.01  # diagnosis.md 4, slow decode, preemption

# --- prefill
PROMPT_PER_GENERATED: Final = 50.0  # computed prompt tokens per generated one: the batch is mostly prefill
PROMPT_HEAVY: Final = 10.0  # from here prefill takes a good part of each step, if it was less before
FREEZE_S: Final = 1.0  # a gap between two tokens that a reader sees as a stop
FEW_PROMPTS: Final = 20  # prompts below which one long one decides how much of the steps is prefill
FREEZE_OBSERVATIONS: Final = 300  # gaps below which the tail says nothing, as for a p99
CEILING_SPREAD: Final = 0.05  # coefficient of variation of logged prompt throughput that counts as flat
CEILING_LINES: Final = 4  # throughput lines needed to call it flat

MOST_LEFT: Final = 0.5  # part of the requests that leave unanswered, from which they decide what the load is
HITS_FELL: Final = 0.2  # diagnosis.md 4, prefill: prefix hits down by 20 points are a change, not noise
HIT_QUERIES: Final = 1000.0  # prompt tokens looked up: below it one prompt decides the share
HIT_BLOCKS: Final = 64.0  # the same in blocks of the cache: of 16 tokens, the smallest in use; larger ones hold more
SAME_LENGTH: Final = 1.5  # prompts within this ratio of their earlier length are the same kind of traffic
SAME_TRAFFIC: Final = 1.25  # as much of it, too: a sender that came anew would add its own
CHANCE_SD: Final = 2.0  # standard deviations that chance may explain
LENGTHS_WEIGH: Final = 2.0  # 1 + squared coefficient of variation of prompt lengths, about 1 for log-normal ones
LENGTH_REQUESTS: Final = 3  # requests that a mean prompt length needs; lengths of one kind of traffic vary little
WARM_REQUESTS: Final = 20.0  # so many prompts' tokens since the start have filled a prefix cache
SENDER_REQUESTS: Final = 3  # of one sender: fewer may be its first ones, which find nothing
SENDER_LOST: Final = 0.05  # of a sender's prompt tokens: less is a short common template, not its conversation
EXPLAINED: Final = 0.1  # what senders' shares predict for all traffic may differ from the counters by so much
FIXED_REUSE: Final = 0.02  # spread of reused lengths that counts as always the same
FIXED_TURNS: Final = 3  # turns of one conversation in which it must be the same
TURN_GREW: Final = 1.2  # its prompt must have grown by so much, or there was nothing more to reuse
EARLY_CHANGE: Final = 0.7  # of a prompt: two that differ before and agree behind share less than they could

# --- fleet
IMBALANCE_RATIO: Final = 3.0  # largest over mean waiting
IDLE_SHARE: Final = 0.5  # a peer with at most this share of the hot one's running requests has room

CROWD_LEAST: Final = 16.0  # running requests on one rank: with fewer, chance or one user's session makes it uneven
CROWD_SHARE: Final = 0.8  # of all running requests: even two ranks are then four to one

# --- front ends
PICKER_BLIND: Final = 1.0  # failed reads of engines a second: GIE reads each every 50 ms; one fails when a pod goes
HANDOFFS_FAILED: Final = 3.0  # fewer are a worker that went; with the usual limit on failures beside it

# --- start
START_SILENT_S: Final = 600.0  # compiling and tuning are silent for minutes (166 s, 131 s, 12 min in public reports)
START_STEP_SILENT_S: Final = 120.0  # a phase that reports steps is never silent for long ...
START_STEPS_SILENT: Final = 10.0  # ... but for so many of its own steps: storage is uneven
START_REPEATS: Final = 2.0  # a silent phase may take this many times what it took at an earlier start
RECOMPILED: Final = 3.0  # compiling took so many times longer than at a start that found its cache
YOUNG_S: Final = 300.0  # a process this old may still compile for shapes it sees for the first time
WARM_UP_TAIL: Final = 0.5  # at least this share of first tokens comes in time: the others paid for the warm-up

# --- speculation
SPECULATION_SLOWS: Final = 1.15  # diagnosis.md 3: time per token up by 15 % beside the fallen acceptance
ACCEPTANCE_COLLAPSE: Final = 0.8  # of its reference, and time per token up (diagnosis.md 3)

# --- host
WHOLLY_ON_GPU: Final = 0.95  # of a model's bytes: less means that whole layers are computed by the CPU
THROTTLED_PERIODS: Final = 0.25  # share of CPU periods in which the container was stopped
NODE_BUSY: Final = 0.9  # of the node's cores
SM_IDLE: Final = 0.4  # diagnosis.md 4: below it, with requests running, the GPU waits for its host

CONTEXT_GREW: Final = 1.5  # tokens of context per running request against their reference

# --- answers
VANISHED_SHARE: Final = 0.2  # of first tokens that neither finished nor still run: clients left
VANISHED_LEAST: Final = 5
REFUSED_SHARE: Final = 0.1  # of HTTP answers; single bad requests are normal
REFUSED_LEAST: Final = 5
ABORTED_SHARE: Final = 0.5  # of finished requests: most clients give up
ABORTED_LEAST: Final = 3  # one or two are somebody who closed a page
REPEATED_SHARE: Final = 0.5  # of prompt tokens, and more than before: the larger part of the work came before
LEFT_WITHIN_S: Final = 1.0  # after the last text: a client that left later left because nothing came
SAME_TEXT: Final = 0.02  # two captures of one answer: a translated protocol may add or drop white space
TEXT_TOKENS: Final = 5  # below it an answer may be nothing but its end token and a template's leftovers
ANSWERS_AGREE: Final = 3  # answers whose own server times show the same: one may have a long prompt, two be chance
LATE_ALLOWED: Final = 0.05  # of answers: the bound of the first token is for the 95th percentile
EMPTY_LEAST: Final = 5  # counted empty answers; a handful shows a rule
EMPTY_SHARE: Final = 0.001  # of all counted answers: a tenth of the usual failure limit, below it nobody calls

# --- saturation
ABOVE_TOP: Final = 0.05  # more than a few per cent above the top bucket: a quantile is only "at least"
