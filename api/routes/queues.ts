import type { Router } from '@koa/router'
import { operator } from '#api/edge/auth.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { endpoint } from '#api/edge/endpoint.ts'
import { changeJobs } from '#api/operators/queues/job-actions.ts'
import { presentPage } from '#api/present/page.ts'
import {
  presentJob,
  presentJobDetail,
  presentQueue,
  presentQueueHistory,
} from '#api/present/queue-job.ts'
import { Refusal } from '#shared/core/errors.ts'
import { jobNames, requiredFields } from '#shared/domain/jobs.ts'
import { listJobs, requireJob, requireQueue, sendJob } from '#shared/storage/queue/job-admin.ts'
import { readQueueHistory } from '#shared/storage/queue/queue-samples.postgres.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'

/** The queues in `contract/operator.md`: what waits, runs and was given up, without the words of users. */
export function queueRoutes(router: Router, backend: ApiBackend): void {
  const { query: sql } = backend.postgres

  endpoint(router, backend, {
    route: 'GET /v1/operator/queues',
    auth: operator,
    async handle(_request, ctx) {
      ctx.body = { items: (await readQueueStats(sql)).map(presentQueue) }
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/operator/queues/history',
    auth: operator,
    async handle({ query: { hours } }, ctx) {
      const since = new Date(backend.now() - hours * 3_600_000)
      ctx.body = presentQueueHistory(await readQueueHistory(sql, since))
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/operator/queues/:queue/jobs',
    auth: operator,
    async handle({ params, query: { limit, cursor } }, ctx) {
      const queue = requireQueue(params.queue)
      const cursorScope = ['GET /v1/operator/queues/:queue/jobs', queue]
      const offset =
        cursor === undefined ? 0 : (backend.cursors.read(cursor, cursorScope) as number)
      const jobs = await listJobs(sql, queue, { limit: limit + 1, offset })
      const rows = jobs.slice(0, limit)
      const next = jobs.length > limit ? backend.cursors.write(offset + limit, cursorScope) : null
      ctx.body = presentPage({ rows, next }, presentJob)
    },
  })

  endpoint(router, backend, {
    route: 'GET /v1/operator/queues/:queue/jobs/:jobId',
    auth: operator,
    async handle({ params }, ctx) {
      const job = await requireJob(sql, requireQueue(params.queue), params.jobId)
      ctx.body = presentJobDetail(job)
    },
  })

  endpoint(router, backend, {
    route: 'POST /v1/operator/queues/:queue/jobs',
    auth: operator,
    async handle({ params, body }, ctx) {
      const name = jobNames.find(name => name === requireQueue(params.queue))
      if (!name)
        throw new Refusal('missing', 'Dead jobs are not sent', 'Name the queue without .dead')
      const missing = requiredFields[name].filter(field => !(field in body.payload))
      if (missing.length > 0)
        throw new Refusal(
          'invalid',
          `payload lacks ${missing.join(', ')}`,
          `A job of ${name} needs them`,
        )
      ctx.body = { job_id: await sendJob(backend.config.databaseUrl, name, body.payload) }
    },
  })

  for (const action of ['run', 'cancel', 'delete'] as const)
    endpoint(router, backend, {
      route: `POST /v1/operator/queues/:queue/jobs/${action}`,
      auth: operator,
      async handle({ params, body }, ctx) {
        const queue = requireQueue(params.queue)
        const ids = body.job_ids?.map(id => id.toLowerCase())
        const { jobs, refused, hasMore } = await changeJobs(backend, action, queue, ids)
        ctx.body = {
          jobs,
          refused: refused.map(({ id, error }) => ({ job_id: id, error })),
          has_more: hasMore,
        }
      },
    })
}
