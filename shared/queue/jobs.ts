import type { IngestJob } from '#shared/memory/promise.ts'

/**
 * The queue board: every background job, what it carries, and how patient we are with it. Names are
 * stable; renaming one strands the jobs already waiting. Payloads outlive deployments: fields may be
 * added as optional, never renamed or retyped.
 */
export type Payloads = {
  ingest: IngestJob
}

export type JobName = keyof Payloads

type Patience = {
  /** Jobs of one tenant are taken in turns with those of others, at most this many at once. */
  batchSize: number
  /** Fetchers in one worker process. */
  concurrency: number
  /** Longest a job may run before it is given to another worker. */
  expireInSeconds: number
  /**
   * `standard`: any number at once; `singleton`: one active per key; `stately`: per key one active and
   * one waiting, further ones coalesce. It cannot be changed once the queue exists.
   */
  policy: 'standard' | 'singleton' | 'stately'
}

export const jobs: Record<JobName, Patience> = {
  ingest: { batchSize: 50, concurrency: 2, expireInSeconds: 900, policy: 'standard' },
}

export const jobNames = Object.keys(jobs) as JobName[]

/**
 * What every queue shares (measured with pg-boss 12.35):
 * - a worker that dies is noticed by its missing heartbeat, 10 to 15 s later (10 is the minimum);
 * - eight tries over about 18 minutes, then the dead-letter queue;
 * - `retentionSeconds` must be long: by default a job that waited 14 days is deleted unseen;
 * - finished jobs hold people's words and go within a minute.
 */
export const patience = {
  heartbeatSeconds: 10,
  retryLimit: 8,
  retryDelay: 5,
  retryBackoff: true,
  retryDelayMax: 300,
  retentionSeconds: 365 * 24 * 3600,
  deleteAfterSeconds: 60,
  warningQueueSize: 5_000,
  notify: true,
} as const

export const deadLetterOf = (name: JobName): string => `${name}.dead`
