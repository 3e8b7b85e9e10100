import { hrefTo, userHref } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { pluralize } from '#api/console/app/format.ts'
import { html, type View } from '#api/console/app/html.ts'
import { useQuery, type QueryState } from '#api/console/app/queries.ts'
import type { LatestMemory } from '#api/console/app/vault/overview.ts'
import type { ListedSession } from '#api/contract/generated/types.ts'

/** The sessions of a vault, and what was said in them last. */
export type SessionRows = { sessions: ListedSession[]; memories: number; rows: LatestMemory[] }

/** Sessions that are counted, and of which memories are read: those stored to last. */
const countedMax = 200
const readMax = 8
/** Tokens of what is read of one, and the rows that are shown of all. */
const tokensOfOne = 500
const shownMax = 20

/** @param user of the account; undefined: the vault of the key */
export const useSessionRows = (user: string | undefined): QueryState<SessionRows> =>
  useQuery(signal => readSessionRows(user, signal), [user])

async function readSessionRows(
  user: string | undefined,
  signal: AbortSignal,
): Promise<SessionRows> {
  const sessions = await listSessions(user, signal)
  const read = await Promise.all(
    sessions.slice(0, readMax).map(async ({ session_id: session }) => {
      const body = { from: '1970-01-01', max_tokens: tokensOfOne }
      const headers = { 'x-session-id': session }
      const { memories } = await call(
        'POST /v1/memory/date-search',
        { body, headers },
        signal,
        user,
      )
      return memories
        .filter(({ source }) => source === 'session')
        .map(({ id, content: text, timestamp: date, role, name, tier }) => ({
          memory_id: id,
          text,
          date,
          role,
          tier,
          session,
          ...(name !== undefined && { name }),
        }))
    }),
  )
  const rows = read.flat().sort((one, other) => other.date.localeCompare(one.date))
  return { sessions, memories: sumOf(sessions), rows: rows.slice(0, shownMax) }
}

export async function listSessions(
  user: string | undefined,
  signal?: AbortSignal,
): Promise<ListedSession[]> {
  const query = { limit: countedMax }
  return (await call('GET /v1/memory/sessions', { query }, signal, user)).items
}

export const sumOf = (sessions: readonly ListedSession[]): number =>
  sessions.reduce((sum, { memories }) => sum + memories, 0)

/** What a vault has in sessions, and how that is undone; nothing where it has none. */
export const sessionsNote = (answer: SessionRows | undefined, user: string): View | null =>
  !answer || answer.memories === 0
    ? null
    : html`<p class="quiet">
        ${`${pluralize(answer.memories, 'memory lies', 'memories lie')} in `}
        <a href=${userHref(user, 'sessions')}>${pluralize(answer.sessions.length, 'session')}</a
        >${', each recalled in its own session alone. '}${sessionsSwitch()}
      </p>`

/** How sessions share one memory from now on. */
export const sessionsSwitch = (): View =>
  html`<span
    >To recall across sessions send <code>X-Memory-Sessions: core</code>, or set it for the account
    under <a href=${hrefTo('policy')}>Policy</a>.</span
  >`
