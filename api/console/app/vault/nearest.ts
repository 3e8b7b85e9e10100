import { hrefWith } from '#api/console/app/address.ts'
import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { html, type View } from '#api/console/app/html.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { section } from '#api/console/app/parts/frame.ts'
import { queryView, row, rows } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { reasonWords } from '#api/console/app/vault/trace-words.ts'
import type { SearchAnswer, Trace } from '#api/contract/generated/types.ts'

type Found = SearchAnswer['memories'][number]

/** Rows that are looked at, and shown; characters of the question. */
const lookedMax = 20
const shownMax = 5
const questionMax = 4_000

/** The lowest scores of a fit, as searches call it. */
const fits = [
  [0.65, 'a strict fit'],
  [0.5, 'a balanced fit'],
  [0.4, 'a broad fit'],
] as const

const fitOf = (score: number): string =>
  fits.find(([least]) => score >= least)?.[1] ?? 'below 0.40, the least of a broad fit'

/** What came nearest to the question of a call and was not given, as the vault is now: why it was not recalled. */
export function Nearest({ trace }: { trace: Trace }): View | null {
  const user = useVaultUser()
  const { question, session_id: session, way, status } = trace
  // A search that is opened asks again when it is told to: it would be a call of its own.
  const [isWanted, setWanted] = useState(way !== 'search')
  const isAsked = question !== null && status !== 'off'
  const given = new Set(trace.blocks.flatMap(({ memories }) => memories.map(one => one.memory_id)))
  const asked = question?.slice(0, questionMax) ?? ''
  const nearest = useQuery(
    isAsked && isWanted ? signal => readNearest({ asked, session, user }, signal) : undefined,
    [trace.trace_id, user, isWanted],
  )
  if (!isAsked) return null
  const search = user === undefined ? ['search'] : ['people', encodeURIComponent(user), 'search']
  return section(
    'What came nearest, and was not given',
    !isWanted
      ? html`<p>${button('Show the next ones', () => setWanted(true))}</p>`
      : queryView(nearest, 'what came nearest', found =>
          nearestView(
            found.filter(
              ({ id, content, timestamp }) =>
                !given.has(id) &&
                content.trim() !== asked.trim() &&
                Date.parse(timestamp) <= Date.parse(trace.created_at),
            ),
          ),
        ),
    html`<a href=${hrefWith({ query: asked }, ...search)}>Search this again</a>`,
  )
}

type Question = { asked: string; session: string | null; user: string | undefined }

async function readNearest(
  { asked: query, session, user }: Question,
  signal: AbortSignal,
): Promise<Found[]> {
  const places = session === null ? [{}] : [{}, { session_id: session }]
  const answers = await Promise.all(
    places.map(place =>
      call('POST /v1/memory/search', { body: { query, limit: lookedMax, ...place } }, signal, user),
    ),
  )
  return answers.flatMap(({ memories }) => memories).sort((one, other) => other.score - one.score)
}

function nearestView(found: readonly Found[]): View {
  const left = found.slice(0, shownMax)
  if (left.length === 0)
    return html`<p class="quiet">Nothing else in the vault has to do with the question.</p>`
  return html`<p class="quiet">
      By their score now. A model is given what answers the question, as many as there is room for.
    </p>
    ${rows(
      left.map(({ id, content, score, why }) => [
        id,
        row(
          html`<p class="latest-text">${content}</p>
            <p class="chips">
              <b>${score.toFixed(2)}</b> <span class="quiet">${fitOf(score)}</span>
              ${why.map(reason => chip(reasonWords[reason]))}
            </p>`,
        ),
      ]),
    )}`
}
