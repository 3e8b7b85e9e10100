import { Refusal, type RefusalReason } from '#shared/core/errors.ts'
import type * as payloads from '#shared/domain/job-payloads.ts'

/**
 * Every background job with its payload. Names are stable: renaming one strands the waiting jobs. Payloads outlive
 * deployments: fields may be added as optional, never renamed or retyped.
 */
export type JobPayloads = {
  ingest: payloads.IngestJob
  upload: payloads.StepJob
  import: payloads.StepJob
  'edit-settle': payloads.EditJob
  'commit-apply': payloads.CommitJob
  'copy-chunk': payloads.StepJob
  reembed: payloads.StepJob
  'delete-ids': payloads.DeleteIdsJob
  retention: payloads.StepJob
  clear: payloads.ClearJob
  'account-erase': payloads.AccountEraseJob
  'org-extract': payloads.OrgExtractJob
  'org-tag': payloads.OrgTurnJob
  'org-reconcile': payloads.OrgTurnJob
  'org-relabel': payloads.RelabelJob
  'org-tag-run': payloads.TagRunJob
  webhook: payloads.WebhookJob
  audit: Record<string, never>
  sweep: Record<string, never>
}

export type JobName = keyof JobPayloads

const step = ['operation', 'vault', 'n'] as const
const orgTurn = ['turn', 'org'] as const
const epochs = ['operation', 'vault', 'epoch'] as const

/** Fields without which no job of a queue can run: one that an operator sends is judged by them. */
export const requiredFields: { [Name in JobName]: readonly (keyof JobPayloads[Name])[] } = {
  ingest: [...epochs, 'session', 'sessionEpoch', 'model', 'memories'],
  upload: step,
  import: step,
  'edit-settle': [...epochs, 'account', 'keyHash', 'id'],
  'commit-apply': ['batch', 'vault', 'epoch', 'space', 'tier', 'covers', 'reflections'],
  'copy-chunk': step,
  reembed: step,
  'delete-ids': [...epochs, 'ids'],
  retention: step,
  clear: ['operation', 'vault', 'session', 'from', 'upTo', 'vaultEpoch', 'key', 'reset'],
  'account-erase': ['operation', 'look'],
  'org-extract': [...orgTurn, 'vault', 'epoch', 'session', 'sessionEpoch', 'saidAt', 'messages'],
  'org-tag': orgTurn,
  'org-reconcile': orgTurn,
  'org-relabel': [...epochs, 'org', 'actor', 'tag', 'from'],
  'org-tag-run': ['org', 'run'],
  webhook: ['delivery'],
  audit: [],
  sweep: [],
}

type JobOptions = {
  /** Jobs that a fetcher takes at once, and fetchers of a worker process. */
  batchSize: number
  concurrency: number
  /** New jobs that no request waits for linger, so that several are taken together: see `QueuePace`. */
  lingers?: true
  /** Jobs of one group that a worker process runs at once; at most `concurrency`. */
  groupConcurrency?: number
  /** Seconds after which a running job is given to another worker. */
  expireInSeconds: number
  /**
   * `standard`: any number at once; `singleton`: one active per key; `stately`: per key one active and one waiting;
   * `exclusive`: one in all. It cannot be changed once the queue exists.
   */
  policy: 'standard' | 'singleton' | 'stately' | 'exclusive'
  /** When it is sent: minute, hour, day, month, weekday in UTC. */
  cron?: string
}

/**
 * Passes wait for a model most of the time; one that hangs (240 s at most) takes a third of the places. One job a batch,
 * since a fetcher waits for its whole batch.
 */
const modelPass = {
  batchSize: 1,
  concurrency: 12,
  groupConcurrency: 4,
  expireInSeconds: 900,
} as const

const everyMinute = { concurrency: 1, policy: 'exclusive', cron: '* * * * *' } as const

export const jobOptions: Record<JobName, JobOptions> = {
  ingest: {
    batchSize: 50,
    concurrency: 2,
    lingers: true,
    expireInSeconds: 900,
    policy: 'standard',
  },
  upload: { batchSize: 4, concurrency: 2, expireInSeconds: 900, policy: 'standard' },
  import: { batchSize: 2, concurrency: 2, expireInSeconds: 900, policy: 'standard' },
  // The copy takes a lock. As `singleton` by destination, 20 jobs of 0.1 s took 19 s, and a worker without its claim
  // would still write.
  'copy-chunk': { batchSize: 2, concurrency: 1, expireInSeconds: 900, policy: 'standard' },
  reembed: { batchSize: 2, concurrency: 1, expireInSeconds: 900, policy: 'standard' },
  'edit-settle': { batchSize: 10, concurrency: 1, expireInSeconds: 300, policy: 'standard' },
  'commit-apply': { batchSize: 5, concurrency: 2, expireInSeconds: 300, policy: 'standard' },
  'delete-ids': { batchSize: 10, concurrency: 1, expireInSeconds: 300, policy: 'standard' },
  retention: { batchSize: 2, concurrency: 1, expireInSeconds: 900, policy: 'standard' },
  clear: { batchSize: 4, concurrency: 1, expireInSeconds: 900, policy: 'standard' },
  'account-erase': { batchSize: 2, concurrency: 1, expireInSeconds: 300, policy: 'standard' },
  'org-extract': { ...modelPass, policy: 'standard' },
  'org-tag': { ...modelPass, policy: 'standard' },
  // The key is the turn; the pass takes the lane of its organization itself. With the organization as the key pg-boss
  // passed over its jobs for up to a minute.
  'org-reconcile': { ...modelPass, policy: 'singleton' },
  'org-relabel': { batchSize: 2, concurrency: 1, expireInSeconds: 900, policy: 'standard' },
  'org-tag-run': { ...modelPass, concurrency: 3, groupConcurrency: 1, policy: 'standard' },
  // By webhook: one that answers slowly delays no other.
  webhook: {
    batchSize: 20,
    concurrency: 6,
    groupConcurrency: 5,
    expireInSeconds: 60,
    policy: 'standard',
  },
  audit: { ...everyMinute, batchSize: 1, expireInSeconds: 120 },
  sweep: { ...everyMinute, batchSize: 2, expireInSeconds: 900 },
}

export const jobNames = Object.keys(jobOptions) as JobName[]

/** Jobs that finish what has taken effect or was acknowledged. */
export const uncancellableJobs = [
  'clear',
  'account-erase',
  'delete-ids',
  'edit-settle',
  'commit-apply',
  'org-relabel',
] as const satisfies JobName[]

/**
 * The options of every queue (measured with pg-boss 12.35):
 * - a dead worker is noticed by its missing heartbeat, 5 to 12 s later (10 is the minimum); its job is tried again after
 *   the first delay, which is short for this reason;
 * - eleven tries over about 16 minutes, then the dead-letter queue;
 * - `retentionSeconds` must be long: by default a job that waited 14 days is deleted;
 * - finished jobs hold content and are deleted within two minutes; those of `ingest` and `commit-apply` as they end.
 */
export const retryPolicy = {
  heartbeatSeconds: 10,
  retryLimit: 10,
  retryDelay: 1,
  retryBackoff: true,
  retryDelayMax: 300,
  retentionSeconds: 365 * 24 * 3600,
  deleteAfterSeconds: 60,
  warningQueueSize: 5_000,
  notify: true,
} as const

/** Reasons of refusals after which another try could succeed. A job may retry more: `alsoRetried`. */
const retriedReasons = new Set<RefusalReason>(['limited', 'upstream', 'unavailable'])

/** Whether every further try would fail as this one did. Errors that are not refusals are retried. */
export const isPermanentFailure = (error: unknown): boolean =>
  error instanceof Refusal && !retriedReasons.has(error.reason)

export const deadLetterQueueOf = (name: JobName): string => `${name}.dead`

/** Something that jobs need does not answer, or refuses everything. */
export type Outage = {
  /** `mongodb`, or the name of an embedding model. */
  dependency: string
  /** One line, without data of clients. */
  reason: string
  /** Whether this process notices the end; otherwise the job must ask again. */
  isAway: boolean
}
