import type { FunctionComponent } from 'preact'
import { useState } from 'preact/hooks'
import { decodePart, hrefTo, hrefWith, userHref } from '#api/console/app/address.ts'
import { call, filled, UserError } from '#api/console/app/api-call.ts'
import {
  dayMs,
  formatCost,
  formatCount,
  formatPercent,
  formatRelativeTime,
  formatShortDay,
  isoDay,
  pluralize,
} from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { buttonLink, copyButton } from '#api/console/app/parts/buttons.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { avatar, chip } from '#api/console/app/parts/chips.ts'
import { filters, textField } from '#api/console/app/parts/fields.ts'
import { figure, page, section } from '#api/console/app/parts/frame.ts'
import {
  editableList,
  emptyNote,
  faultNote,
  line,
  listView,
  queryView,
} from '#api/console/app/parts/notes.ts'
import {
  useCall,
  useDebounced,
  usePagedList,
  usePages,
  useQuery,
} from '#api/console/app/queries.ts'
import {
  budgetBar,
  budgetButton,
  budgetView,
  fullness,
  usedOf,
} from '#api/console/app/vault/budget.ts'
import { latestList, memoriesOverTime, type LatestMemory } from '#api/console/app/vault/overview.ts'
import { profileView } from '#api/console/app/vault/profile.ts'
import { Prompt } from '#api/console/app/vault/prompt.ts'
import { readOnce } from '#api/console/app/vault/read-once.ts'
import { Search } from '#api/console/app/vault/search.ts'
import { Sessions } from '#api/console/app/vault/sessions.ts'
import { useSessionRows, sessionsNote } from '#api/console/app/vault/session-rows.ts'
import { givenWords } from '#api/console/app/vault/trace-words.ts'
import { traceHref } from '#api/console/app/vault/traces.ts'
import words from '#api/console/app/vault/words.json' with { type: 'json' }
import { UserContext, useVaultUser } from '#api/console/app/vault-user.ts'
import type {
  AccountUser,
  DeleteAccountUserAnswer,
  ListedMemory,
  MemoryKey,
  VaultStats,
} from '#api/contract/generated/types.ts'

/**
 * The users of the account, or one of them.
 *
 * @param id of the user, as the address has it
 * @param part of what is shown of the user
 */
export const People = ({ id, part }: { id: string | undefined; part?: string }): View =>
  id === undefined
    ? renderComponent(AllPeople, {})
    : renderComponent(Person, { user: decodePart(id), part, key: id })

function AllPeople(): View {
  const [user, setUser] = useState('')
  const asked = useDebounced(user.trim())
  const list = usePages('GET /v1/account/users', {
    query: filled({ q: asked, counts: true, limit: 50 }),
  })
  const counts = useCall('GET /v1/account/users', { query: { limit: 1 } }).answer
  const count =
    counts && ` ${formatCount(counts.users)} of at most ${formatCount(counts.users_max)}.`
  return page({
    title: 'Users',
    description: `The users of your product, by your own ids. Each has a vault.${count ?? ''}`,
    children: html`${filters(
      textField({ ...words.fields.findUser, type: 'search', value: user, onValue: setUser }),
    )}
    ${editableList(list, {
      what: 'the users',
      empty: [
        asked === '' ? 'No users' : 'No id or name has this in it',
        'A key made with an id of yours, or a request that names one in X-Memory-User, makes a user.',
      ],
      key: ({ key_id }) => key_id,
      main: personView,
      actions: ({ external_id: about, key_id: id, budget }) =>
        budgetButton({ id, about, budget, onChanged: list.refetch }),
    })}`,
  })
}

const personView = ({ external_id: id, name, active, budget, ...user }: AccountUser): View =>
  line(
    html`${avatar({ role: 'user', name: id })}
      <a class="row-title" href=${userHref(id)} aria-label=${`Open: ${id}`}>${id}</a>
      ${name !== 'User' && !id.includes(name) && chip(name)} ${!active && chip('ended', 'bad')}`,
    [
      budgetView(budget),
      html`<b>${pluralize(user.memories ?? 0, 'memory', 'memories')}</b>`,
      `+${formatCount(user.memories_7_days ?? 0)} in 7 days`,
      user.last_used_at === null ? 'never used' : `used ${formatRelativeTime(user.last_used_at)}`,
    ],
    'line-user',
  )

/** What is remembered of one user: over time, as a profile and word for word; searched; as a model gets it. */
function Person({ user, part }: { user: string; part: string | undefined }): View {
  const known = useQuery(signal => findUser(user, signal), [user])
  const Part = parts[part ?? '']
  if (!known.answer || !Part) {
    return page({
      title: user,
      actions: buttonLink('All users', hrefTo('people')),
      children: known.answer
        ? emptyNote('There is no such page', 'This user has none of this name.')
        : queryView(known, 'the user', () => html``),
    })
  }
  const props = { known: known.answer, onChanged: known.refetch }
  return html`<${UserContext.Provider} value=${user}>${renderComponent(Part, props)}<//>`
}

type PartProps = { known: MemoryKey; onChanged: () => void }

const parts: Partial<Record<string, FunctionComponent<PartProps>>> = {
  '': PersonOverview,
  search: Search,
  prompt: Prompt,
  sessions: Sessions,
}

/** Looks for the key of a user first: a request about an unknown id could make that user. */
export async function findUser(user: string, signal?: AbortSignal): Promise<MemoryKey> {
  const { items } = await call('GET /v1/keys', { query: { external_id: user, limit: 1 } }, signal)
  if (!items[0]) throw new UserError('The account has no user of this id')
  return items[0]
}

const deleteButton = (
  user: string,
  stats: VaultStats | undefined,
  onErased: (answer: DeleteAccountUserAnswer) => void,
): View =>
  confirmButton('Delete this user', {
    title: `Delete ${user}?`,
    message: html`<p>
      ${`${pluralize(stats?.memories ?? 0, 'memory', 'memories')} of ${user}, in all sessions, and every key of this vault go at once and for good. A receipt says so.`}
    </p>`,
    kind: 'end',
    confirmationText: 'delete',
    act: async () => {
      const params = { externalId: user }
      onErased(await call('DELETE /v1/account/users/:externalId', { params }))
    },
  })

/** What is left of a user: the receipt. */
const erasedView = ({ id, erased, receipt, operation_id }: DeleteAccountUserAnswer): View =>
  page({
    title: 'The user is deleted',
    description: id,
    actions: buttonLink('All users', hrefTo('people')),
    children: html`<section class="panel stack">
      <p>
        ${`${pluralize(erased.memories, 'memory', 'memories')} and ${pluralize(erased.keys, 'key')} are gone from every answer; the stores are cleared in the background (operation ${operation_id}).`}
      </p>
      <p>The receipt, signed by this service, names the user by a digest alone:</p>
      <pre class="code" tabindex="0">${receipt}</pre>
      <div class="actions">${copyButton('Copy the receipt', receipt, { kind: 'main' })}</div>
    </section>`,
  })

function PersonOverview({ known, onChanged }: PartProps): View {
  const [receipt, setReceipt] = useState<DeleteAccountUserAnswer>()
  const user = useVaultUser()!
  const stats = useCall('GET /v1/memory/stats', { query: { by_day: true } })
  if (receipt) return erasedView(receipt)
  return page({
    title: user,
    description: 'A user of your product, opened with the key of the account.',
    actions: canWrite() && [
      budgetButton({ id: known.id, about: user, budget: known.budget, onChanged }),
      deleteButton(user, stats.answer, setReceipt),
    ],
    children: queryView(
      stats,
      'the user',
      answer =>
        html`<div class="stack-wide">
          ${renderComponent(PersonFigures, { known, stats: answer })}
          ${
            answer.memories === 0
              ? emptyNote(
                  'Nothing is remembered of this user',
                  'The first exchange that is stored appears here.',
                )
              : renderComponent(KnownPerson, { user, stats: answer })
          }
        </div>`,
    ),
  })
}

/** What a user has in memory, when they last called, what a week of them cost, and what is left of their budget. */
function PersonFigures({ known, stats }: { known: MemoryKey; stats: VaultStats }): View {
  const user = known.external_id!
  const calls = useCall('GET /v1/traces', { query: { limit: 1 } })
  // The report is the account's: it is not asked for as the user.
  const query = { external_id: user, start: isoDay(Date.now() - 6 * dayMs), limit: 1 }
  const week = useQuery(signal => call('GET /v1/account/usage/report', { query }, signal), [user])
  const { memories, oldest } = stats
  const { budget } = known
  const last = calls.answer?.items[0]
  const total = week.answer?.total
  return html`<dl class="figures">
    ${figure('Memories', formatCount(memories), oldest ? `since ${formatShortDay(oldest)}` : 'none yet')}
    ${figure(
      'Last call',
      last ? formatRelativeTime(last.created_at) : '–',
      last
        ? html`<a href=${traceHref(last.trace_id, user)}
            >${last.error ? 'it failed' : givenWords(last)}</a
          >`
        : 'none in the log',
    )}
    ${figure(
      'Cost of 7 days',
      total ? formatCost(total.cost_usd) : '–',
      html`<a href=${hrefWith({ user }, 'traces')}
        >${pluralize(total?.requests ?? 0, 'request')}</a
      >`,
    )}
    ${figure(
      'Budget',
      budget ? formatPercent(fullness(budget)) : 'none',
      budget ? budgetBar(budget, usedOf(budget, '\n')) : 'as much as they like',
    )}
  </dl>`
}

/** Rows are billed: the first look is a short one. */
const firstRows = 5
const moreRows = 20

/** What is known of a user, and what was said, in the core and in sessions, as one list. */
function KnownPerson({ user, stats }: { user: string; stats: VaultStats }): View {
  const profile = useQuery(
    signal =>
      readOnce(['profile', user, stats], () =>
        call('GET /v1/memory/profile', { query: { limit: 100 } }, signal, user),
      ),
    [user, stats],
  )
  const core = usePagedList<ListedMemory>(
    (cursor, signal) => {
      const query = { limit: cursor ? moreRows : firstRows, ...(cursor && { cursor }) }
      return readOnce(['list', user, stats, cursor], () =>
        call('GET /v1/memory/list', { query }, signal, user),
      )
    },
    [user, stats],
  )
  const sessions = useSessionRows(user)
  // What is older than the page of the core has its place on a later one.
  const since = core.loadMore ? (core.items.at(-1)?.date ?? '') : ''
  const ofSessions = (sessions.answer?.rows ?? []).filter(({ date }) => date >= since)
  const items = [...core.items, ...ofSessions].sort((one, other) =>
    other.date.localeCompare(one.date),
  )
  return html`<div class="halves">
      ${section('Profile', queryView(profile, 'the profile', profileView))}
      ${section(
        'What was said, newest first',
        html`<div class="stack">
          ${faultNote(sessions.fault, sessions.refetch)}
          ${listView<LatestMemory>(
            { ...core, items, isLoading: core.isLoading || sessions.isLoading },
            {
              what: 'memories',
              empty: html`<p class="quiet">Nothing is left of what was said.</p>`,
              show: latestList,
            },
          )}
        </div>`,
        html`<a href=${userHref(user, 'sessions')}>Sessions</a>`,
      )}
    </div>
    ${sessionsNote(sessions.answer, user)} ${memoriesOverTime(stats, false)}`
}
