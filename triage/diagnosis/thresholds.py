"""Every threshold of the diagnosis, each with its reason. Starting values of diagnosis.md unless said."""

from typing import Final

# --- shares of the user's time
SHARE_SUPPORT: Final = 0.3  # diagnosis.md 4: below it a wait is not what the user feels
SHARE_LIKELY: Final = 0.5  # the larger half of the time
REASONING_SHARE: Final = 0.4  # diagnosis.md 4, hidden reasoning
RESIDUAL_LIMIT: Final = 0.3  # time in no known phase: then no label is surer than "possible"

# --- progress
STALL_SECONDS: Final = 20.0  # gate 2: one long prefill still moves steps or prompt tokens within it
DIAL_MINIMUM: Final = 5  # observations below which a mean carries no evidence
WEAK_BELOW: Final = 20  # a mean of 5 to 20 observations counts with strength 1
QUANTILE_MINIMUM: Final = 60  # for a p95

# --- slow against what
SLOWER_THAN_USUAL: Final = 1.5  # ratio to a reference at a comparable batch; 14 % more at a larger batch is normal
BATCH_GREW: Final = 1.5  # running this many times its reference explains a slower token by itself
UNCHANGED: Final = 1.2  # within 20 % of its reference a value is "as usual"

FIRST_TOKEN_FELT: Final = 1.0  # seconds: a sooner first token is no complaint, however much sooner it once came

# --- batch
LARGE_BATCH: Final = 8.0  # running requests from which the batch may have grown enough to explain a slower token
BATCH_SLOWS: Final = (
    4.0  # a full batch's step takes at most about so many times a single sequence's (mixture of experts)
)
FLAT: Final = 0.1  # a full batch is read one or two short of its limit: gauges are taken after finished requests leave

# --- KV cache
KV_FULL: Final = 0.9  # naming rule 4a: with requests waiting, KV binds from here
KV_HIGH: Final = 0.7  # room for few more sequences; a head of the queue that needs more than the rest waits
KV_LOW: Final = 0.5  # below it KV is not what a request waits for
PREEMPTIONS_PER_FINISHED: Final = 0.01  # diagnosis.md 4, slow decode, preemption

# --- prefill
PROMPT_PER_GENERATED: Final = 50.0  # computed prompt tokens per generated one: the batch is mostly prefill
PROMPT_HEAVY: Final = 10.0  # from here prefill takes a good part of each step, if it was less before
FREEZE_S: Final = 1.0  # a gap between two tokens that a reader sees as a stop
FREEZE_OBSERVATIONS: Final = 300  # gaps below which the tail says nothing, as for a p99
CEILING_SPREAD: Final = 0.05  # coefficient of variation of logged prompt throughput that counts as flat
CEILING_LINES: Final = 4  # throughput lines needed to call it flat

HITS_FELL: Final = 0.2  # diagnosis.md 4, prefill: prefix hits down by 20 points are a change, not noise
HIT_QUERIES: Final = 1000.0  # prompt tokens looked up: below it one prompt decides the share

# --- fleet
IMBALANCE_RATIO: Final = 3.0  # largest over mean waiting
IDLE_SHARE: Final = 0.5  # a peer with at most this share of the hot one's running requests has room

CROWD_LEAST: Final = 16.0  # running requests on one rank: with fewer, chance or one user's session makes it uneven
CROWD_SHARE: Final = 0.8  # of all running requests: even two ranks are then four to one

# --- speculation
ACCEPTANCE_COLLAPSE: Final = 0.8  # of its reference, and time per token up (diagnosis.md 3)

# --- host
WHOLLY_ON_GPU: Final = 0.95  # of a model's bytes: less means that whole layers are computed by the CPU
THROTTLED_PERIODS: Final = 0.25  # share of CPU periods in which the container was stopped
NODE_BUSY: Final = 0.9  # of the node's cores

# --- answers
VANISHED_SHARE: Final = 0.2  # of first tokens that neither finished nor still run: clients left
VANISHED_LEAST: Final = 5
REFUSED_SHARE: Final = 0.1  # of HTTP answers; single bad requests are normal
REFUSED_LEAST: Final = 5
ABORTED_SHARE: Final = 0.5  # of finished requests: most clients give up

# --- saturation
ABOVE_TOP: Final = 0.05  # more than a few per cent above the top bucket: a quantile is only "at least"
