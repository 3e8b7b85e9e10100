import { useEffect, useState } from 'preact/hooks'
import { VaultError, type EndpointResponse } from '#api/client/client.ts'
import { useAction, useQuery } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { dialog } from '#api/console/app/parts/dialog.ts'
import { faultNote, queryView } from '#api/console/app/parts/query-view.ts'
import type { Tag } from '#api/console/app/org/org-queries.ts'
import { formatCount, formatDateTime, pluralize } from '#api/console/app/format.ts'

type TagRun = EndpointResponse<'GET /v1/orgs/:orgId/tags/:tagId/apply'>
type Estimate = { memories: number; calls: number; input_tokens: number }
type Props = { org: string; tag: Tag; onClose: () => void }

const pollIntervalMs = 2_000

/** Applies a tag to the memories that are shared already: what that costs, and how far it is. */
export function TagRunDialog({ org, tag, onClose }: Props): View {
  const params = { orgId: org, tagId: tag.tag_id }
  const [started, setStarted] = useState(0)
  const runQuery = useQuery(signal => findRun(params, signal), [tag.tag_id, started])
  const run = runQuery.answer?.run
  const isRunning = run?.state === 'running'
  const estimateQuery = useQuery(isRunning ? undefined : signal => estimate(params, signal), [
    tag.tag_id,
    isRunning,
  ])
  const actionState = useAction()
  useEffect(() => {
    if (!isRunning) return undefined
    const timer = setTimeout(runQuery.refetch, pollIntervalMs)
    return () => clearTimeout(timer)
  }, [runQuery.answer])
  const start = () =>
    void actionState.run(async () => {
      await call('POST /v1/orgs/:orgId/tags/:tagId/apply', { params, body: {} })
      setStarted(count => count + 1)
    })
  return dialog({
    title: `Apply ${tag.label} to shared memories`,
    onClose,
    children: html`<div class="stack">
      <p>
        The tag is checked against every shared memory that does not have it. Memories that it fits
        get the tag, so fewer members see them, never more. Where the answer is doubtful, the memory
        also goes to review.
      </p>
      ${queryView(runQuery, 'the last run', ({ run: last }) => html`<div>${last && runView(last)}</div>`)}
      ${
        !isRunning &&
        queryView(estimateQuery, 'the estimate', expected =>
          estimateView(expected, { start, isStarting: actionState.isRunning }),
        )
      }
      ${faultNote(actionState.fault)}
    </div>`,
  })
}

type Params = { orgId: string; tagId: string }

/** The newest run; null where the tag was never applied. */
async function findRun(params: Params, signal: AbortSignal): Promise<{ run: TagRun | null }> {
  try {
    return { run: await call('GET /v1/orgs/:orgId/tags/:tagId/apply', { params }, signal) }
  } catch (error) {
    if (error instanceof VaultError && error.status === 404) return { run: null }
    throw error
  }
}

async function estimate(params: Params, signal: AbortSignal): Promise<Estimate> {
  const answer = await call(
    'POST /v1/orgs/:orgId/tags/:tagId/apply',
    { params, body: { dry_run: true } },
    signal,
  )
  if ('dry_run' in answer) return answer
  throw new Error('a dry run was answered with a run')
}

const estimateView = (
  { memories, calls, input_tokens: tokens }: Estimate,
  { start, isStarting }: { start: () => void; isStarting: boolean },
): View =>
  memories === 0
    ? html`<p>Every shared memory has this tag.</p>`
    : html`<p>
          ${pluralize(memories, 'memory', 'memories')} to check: ${pluralize(calls, 'model call')},
          about ${formatCount(tokens)} input tokens.
        </p>
        <div class="actions">
          <button type="button" class="button button-main" disabled=${isStarting} onClick=${start}>
            ${isStarting ? 'Starting …' : `Check ${pluralize(memories, 'memory', 'memories')}`}
          </button>
        </div>`

const runView = (run: TagRun): View => {
  const { state, memories, examined, tagged, doubtful, last_error: lastError } = run
  return html`<section class="stack" aria-label="Last run" role="status">
    ${
      state === 'running' &&
      html`<div class="progress">
        <progress
          value=${examined}
          max=${Math.max(memories, 1)}
          aria-label="Memories checked"
        ></progress>
      </div>`
    }
    <p>
      ${
        state === 'running'
          ? `Checked ${formatCount(examined)} of ${pluralize(memories, 'memory', 'memories')}.`
          : `Last run: checked ${pluralize(examined, 'memory', 'memories')}.`
      }${' '}
      ${formatCount(tagged)} got the tag, ${formatCount(doubtful)} of them are in review.
    </p>
    ${lastError !== null && html`<p class="fault-words">Waiting: ${lastError}</p>`}
    <p class="quiet">Started by ${run.created_by}, ${formatDateTime(run.created_at)}</p>
  </section>`
}
