import { queueOfDead, type JobDetail, type JobRow } from '#shared/storage/queue/job-admin.ts'
import type { QueueHistory } from '#shared/storage/queue/queue-samples.postgres.ts'
import type { QueueStats } from '#shared/storage/queue/queue-stats.ts'

export const presentQueue = (queue: QueueStats) => ({
  name: queue.name,
  waiting: queue.waiting,
  held: queue.held,
  waits_for: queue.waitsFor,
  retrying: queue.retrying,
  running: queue.active,
  dead: queue.dead,
  oldest_seconds: queue.oldestSeconds,
  longest_seconds: queue.longestSeconds,
})

export const presentQueueHistory = ({ at, queues }: QueueHistory) => ({
  at: at.map(time => time.toISOString()),
  items: queues.map(({ name, samples }) => ({
    name,
    waiting: samples.map(({ waiting }) => waiting),
    running: samples.map(({ active }) => active),
    dead: samples.map(({ dead }) => dead),
    oldest_seconds: samples.map(({ oldestSeconds }) => oldestSeconds),
  })),
})

const stateNames = {
  created: 'waiting',
  retry: 'retrying',
  active: 'running',
  completed: 'done',
  cancelled: 'cancelled',
  failed: 'failed',
} as const

export const presentJob = (job: JobRow) => ({
  job_id: job.id,
  queue: job.queue,
  state:
    queueOfDead(job.queue) && job.state === 'created' ? ('dead' as const) : stateNames[job.state],
  tries: job.tries,
  created_at: job.createdAt.toISOString(),
  starts_after: job.startsAfter.toISOString(),
  started_at: job.startedAt?.toISOString() ?? null,
  finished_at: job.completedAt?.toISOString() ?? null,
  operation_id: job.operation,
  error: job.error,
})

export const presentJobDetail = (job: JobDetail) => ({
  ...presentJob(job),
  priority: job.priority,
  payload: Object(withoutWords(job.data)) as object,
})

const idOrDigest = /^(?:[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}|[\da-f]{32,128})$/i

/** Fields whose text is the service's own. */
const serviceFields = new Set(['model', 'space', 'role'])

/** Ids, digests, numbers and names of models; any other text by its length, metadata by its count. */
function withoutWords(value: unknown, name = ''): unknown {
  if (typeof value === 'string')
    return serviceFields.has(name) || idOrDigest.test(value)
      ? value
      : `(${value.length} characters)`
  if (Array.isArray(value)) return value.map(item => withoutWords(item, name))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value)
  if (name === 'metadata') return `(${fields.length} fields)`
  return Object.fromEntries(fields.map(([key, field]) => [key, withoutWords(field, key)]))
}
