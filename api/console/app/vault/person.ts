import { callForUser, UserError, call } from '#api/console/app/api-call.ts'
import { formatCompact, formatCount, formatShortDay } from '#api/console/app/format.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import {
  emptyNote,
  faultNote,
  loadingNote,
  moreButton,
  queryView,
} from '#api/console/app/parts/query-view.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { useQuery } from '#api/console/app/use-query.ts'
import { historyChart } from '#api/console/app/vault/history-chart.ts'
import { latestList } from '#api/console/app/vault/latest-memories.ts'
import { readOnce } from '#api/console/app/vault/read-once.ts'
import { profileView } from '#api/console/app/vault/profile.ts'
import type { ListedMemory, VaultStats } from '#api/contract/generated/types.ts'

/** What is remembered of one user: over time, as a profile, and word for word. */
export function Person({ user }: { user: string }): View {
  const stats = useQuery(signal => readKnownUser(user, signal), [user])
  return page({
    title: user,
    description: 'A user of your product, opened with the key of the account.',
    actions: html`<a class="button" href=${hrefTo('people')}>All people</a>`,
    children: queryView(stats, 'the user', answer =>
      answer.memories === 0
        ? emptyNote(
            'Nothing is remembered of this user',
            'The first exchange that is stored appears here.',
          )
        : renderComponent(KnownPerson, { user, stats: answer }),
    ),
  })
}

/** A request about an id that the account does not know could make that user: it is looked for first. */
async function readKnownUser(user: string, signal: AbortSignal): Promise<VaultStats> {
  const { items } = await call('GET /v1/keys', { query: { external_id: user, limit: 1 } }, signal)
  if (items.length === 0) throw new UserError('The account has no user of this id')
  return callForUser(user, 'GET /v1/memory/stats', { query: { by_day: true } }, signal)
}

function KnownPerson({ user, stats }: { user: string; stats: VaultStats }): View {
  const { memories, total_tokens, oldest, newest, by_day } = stats
  const profile = useQuery(
    signal =>
      readOnce(['profile', user, stats], () =>
        callForUser(user, 'GET /v1/memory/profile', { query: { limit: 100 } }, signal),
      ),
    [user, stats],
  )
  return html`<div class="stack-wide">
    <dl class="figures">
      ${figure('Memories', formatCount(memories))}
      ${figure('Tokens', formatCompact(total_tokens), 'of text')}
      ${oldest && figure('Oldest', formatShortDay(oldest))}
      ${newest && figure('Newest', formatShortDay(newest))}
    </dl>
    ${by_day && by_day.length > 0 && section('Memories over time', historyChart(by_day, { linked: false }))}
    <div class="halves">
      ${section('Profile', queryView(profile, 'the profile', profileView))}
      ${section('Timeline', renderComponent(PersonTimeline, { user, stats }))}
    </div>
  </div>`
}

/** Rows are billed: the first look is a short one. */
const firstRows = 5
const moreRows = 20

function PersonTimeline({ user, stats }: { user: string; stats: VaultStats }): View {
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<ListedMemory>(
    (cursor, signal) => {
      const query = { limit: cursor ? moreRows : firstRows, ...(cursor && { cursor }) }
      return readOnce(['list', user, stats, cursor], () =>
        callForUser(user, 'GET /v1/memory/list', { query }, signal),
      )
    },
    [user, stats],
  )
  return html`<div class="stack">
    ${faultNote(fault, refetch)} ${latestList(items)}
    ${isLoading && items.length === 0 ? loadingNote('memories') : moreButton(loadMore, isLoading)}
  </div>`
}
