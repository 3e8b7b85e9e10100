import type { Router } from '@koa/router'
import type { Context } from 'koa'
import type { ApiBackend } from '#api/edge/api-backend.ts'
import { readForm, refuseForeignForm } from '#api/edge/forms.ts'
import { requireOperator } from '#api/operators/operator-auth.ts'
import {
  basePath,
  jobBody,
  jobsBody,
  jobsPerPage,
  page,
  pageStyle,
  queuesBody,
  sendBody,
} from '#api/operators/queues/pages.ts'
import { Refusal } from '#shared/core/errors.ts'
import { sanitizeJson } from '#shared/core/sanitize-text.ts'
import { jobNames } from '#shared/domain/jobs.ts'
import {
  deleteEndedJob,
  isCancelledToDelete,
  listJobs,
  requireJob,
  requireQueue,
  retryJob,
  sendJob,
  type JobDetail,
} from '#shared/storage/queue/job-admin.ts'
import { readQueueStats } from '#shared/storage/queue/queue-stats.ts'
import { cancelAsOperator } from '#shared/vault/delete/cancel.ts'

/** The pages have no scripts and load nothing but their style. */
const contentSecurityPolicy =
  "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; " +
  "frame-ancestors 'none'"

/**
 * Pages for the operator over the job queue: what waits, runs and was given up, each job without the words
 * of users; run now, cancel, delete, send.
 */
export function queuePages(router: Router, backend: ApiBackend): void {
  const { query } = backend.postgres
  const authorize = async (ctx: Context): Promise<void> => {
    await requireOperator(ctx, backend)
    ctx.set('Content-Security-Policy', contentSecurityPolicy)
    if (ctx.method === 'POST') refuseForeignForm(ctx)
  }

  router.get(basePath, async ctx => {
    await authorize(ctx)
    ctx.body = page('Queues', queuesBody(await readQueueStats(query)), noticeOf(ctx))
  })

  router.get(`${basePath}/style.css`, async ctx => {
    await authorize(ctx)
    ctx.type = 'text/css'
    ctx.body = pageStyle
  })

  router.get(`${basePath}/send`, async ctx => {
    await authorize(ctx)
    ctx.body = page('Send a job', sendBody)
  })

  router.post(`${basePath}/send`, async ctx => {
    await authorize(ctx)
    const form = await readForm(ctx)
    const queue = jobNames.find(name => name === form.get('queue'))
    if (!queue) throw new Refusal('invalid', 'queue is not the name of a queue')
    const id = await sendJob(backend.config.databaseUrl, queue, parsePayload(form.get('data')))
    redirect(ctx, `${basePath}/${queue}`, id ? `Sent ${id}` : 'One like it waits already')
  })

  router.get(`${basePath}/:queue`, async ctx => {
    await authorize(ctx)
    const queue = requireQueue(ctx.params.queue!)
    const pageNumber = toPageNumber(ctx.query.page)
    const offset = (pageNumber - 1) * jobsPerPage
    const jobs = await listJobs(query, queue, { limit: jobsPerPage, offset })
    ctx.body = page(`Queue ${queue}`, jobsBody(queue, jobs, pageNumber), noticeOf(ctx))
  })

  router.get(`${basePath}/:queue/jobs/:id`, async ctx => {
    await authorize(ctx)
    ctx.body = page('Job', jobBody(await jobOf(backend, ctx)), noticeOf(ctx))
  })

  router.post(`${basePath}/:queue/jobs/:id/:action`, async ctx => {
    await authorize(ctx)
    const name = ctx.params.action!
    const action = Object.hasOwn(actions, name) ? actions[name] : undefined
    if (!action) throw new Refusal('missing', 'There is no such action')
    const job = await jobOf(backend, ctx)
    redirect(ctx, `${basePath}/${job.queue}`, await action(backend, job))
  })
}

/** Each does something to a job. @returns what to say about it. */
const actions: Record<string, (backend: ApiBackend, job: JobDetail) => Promise<string>> = {
  async retry({ postgres, config }, job) {
    await retryJob(postgres, config.databaseUrl, job)
    return `${job.id} runs when a worker is free`
  },
  async cancel(backend, { id }) {
    const { removed, active } = await cancelAsOperator(backend, id)
    if (active > 0) throw new Refusal('conflict', 'This job runs and cannot be cancelled')
    if (removed === 0) throw new Refusal('conflict', 'This job has ended', 'Delete it')
    return removed === 1 ? `${id} is cancelled` : `${removed} jobs of one operation are cancelled`
  },
  async delete(backend, job) {
    const { id } = job
    if (!isCancelledToDelete(job)) await deleteEndedJob(backend.config.databaseUrl, job)
    else {
      const { active } = await cancelAsOperator(backend, id)
      if (active > 0)
        throw new Refusal(
          'conflict',
          'Another job of its operation runs',
          'Delete it when that has ended',
        )
    }
    return `${id} is deleted`
  },
}

const jobOf = ({ postgres }: ApiBackend, ctx: Context & { params: Record<string, string> }) =>
  requireJob(postgres.query, requireQueue(ctx.params.queue!), ctx.params.id!)

const pagesMax = 1_000_000

/** The number of a page; the first one where there is none, and the last that may be asked for beyond it. */
const toPageNumber = (text: string | string[] | undefined): number =>
  Math.min(pagesMax, Math.max(1, Math.trunc(Number(text)) || 1))

/** Of what the database can store: as in the bodies of the API, a NUL becomes U+FFFD. */
function parsePayload(text: string | null): object {
  try {
    const data = sanitizeJson(JSON.parse(text ?? ''))
    if (typeof data === 'object' && data !== null && !Array.isArray(data)) return data
  } catch (error) {
    if (error instanceof Refusal) throw error
  }
  throw new Refusal('invalid', 'data is no JSON object')
}

const noticeOf = (ctx: Context): string => String(ctx.query.done ?? '').slice(0, 200)

function redirect(ctx: Context, path: string, done: string): void {
  ctx.status = 303
  ctx.redirect(`${path}?done=${encodeURIComponent(done)}`)
}
