import type { FunctionComponent } from 'preact'
import { useState } from 'preact/hooks'
import { decodePart, hrefTo } from '#api/console/app/address.ts'
import { call, filled, UserError } from '#api/console/app/api-call.ts'
import { formatCount, formatRelativeTime, pluralize } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { canWrite } from '#api/console/app/credential.ts'
import { buttonLink, copyButton } from '#api/console/app/parts/buttons.ts'
import { confirmButton } from '#api/console/app/parts/dialogs.ts'
import { avatar, chip } from '#api/console/app/parts/chips.ts'
import { filters, textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList, emptyNote, line, listView, queryView } from '#api/console/app/parts/notes.ts'
import {
  useCall,
  useDebounced,
  usePagedList,
  usePages,
  useQuery,
} from '#api/console/app/queries.ts'
import { budgetButton, budgetView } from '#api/console/app/vault/budget.ts'
import { latestList, vaultFigures } from '#api/console/app/vault/overview.ts'
import { profileView } from '#api/console/app/vault/profile.ts'
import { Prompt } from '#api/console/app/vault/prompt.ts'
import { readOnce } from '#api/console/app/vault/read-once.ts'
import { Search } from '#api/console/app/vault/search.ts'
import { Sessions } from '#api/console/app/vault/sessions.ts'
import { useSessionRows, sessionsNote } from '#api/console/app/vault/session-rows.ts'
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
      textField({
        label: 'Id or name of the user',
        type: 'search',
        value: user,
        onValue: setUser,
        maxlength: 256,
        placeholder: 'any part of it',
      }),
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
      <a
        class="row-title"
        href=${hrefTo('people', encodeURIComponent(id))}
        aria-label=${`Open: ${id}`}
        >${id}</a
      >
      ${name !== id && name !== 'User' && chip(name)} ${!active && chip('ended', 'bad')}`,
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
  const Part = part === undefined ? PersonOverview : parts[part]
  if (!known.answer || !Part) {
    return page({
      title: user,
      actions: buttonLink('All users', hrefTo('people')),
      children: known.answer
        ? emptyNote('There is no such page', 'This user has none of this name.')
        : queryView(known, 'the user', () => html``),
    })
  }
  return html`<${UserContext.Provider} value=${user}>${renderComponent(Part, {})}<//>`
}

const parts: Partial<Record<string, FunctionComponent>> = {
  search: Search,
  prompt: Prompt,
  sessions: Sessions,
}

/** Looks for the key of a user first: a request about an unknown id could make that user. */
async function findUser(user: string, signal: AbortSignal): Promise<MemoryKey> {
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

function PersonOverview(): View {
  const [receipt, setReceipt] = useState<DeleteAccountUserAnswer>()
  const user = useVaultUser()!
  const stats = useCall('GET /v1/memory/stats', { query: { by_day: true } })
  if (receipt) return erasedView(receipt)
  return page({
    title: user,
    description: 'A user of your product, opened with the key of the account.',
    actions: canWrite() && deleteButton(user, stats.answer, setReceipt),
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

/** Rows are billed: the first look is a short one. */
const firstRows = 5
const moreRows = 20

function KnownPerson({ user, stats }: { user: string; stats: VaultStats }): View {
  const profile = useQuery(
    signal =>
      readOnce(['profile', user, stats], () =>
        call('GET /v1/memory/profile', { query: { limit: 100 } }, signal, user),
      ),
    [user, stats],
  )
  const timeline = usePagedList<ListedMemory>(
    (cursor, signal) => {
      const query = { limit: cursor ? moreRows : firstRows, ...(cursor && { cursor }) }
      return readOnce(['list', user, stats, cursor], () =>
        call('GET /v1/memory/list', { query }, signal, user),
      )
    },
    [user, stats],
  )
  const sessions = useSessionRows(user)
  return html`<div class="stack-wide">
    ${vaultFigures(stats, { linked: false })} ${sessionsNote(sessions.answer, user)}
    <div class="halves">
      ${section('Profile', queryView(profile, 'the profile', profileView))}
      <div class="stack-wide">
        ${section(
          'Timeline',
          html`<div class="stack">
            ${listView(timeline, {
              what: 'memories',
              empty: html`<p class="quiet">Nothing was stored without a session.</p>`,
              show: latestList,
            })}
          </div>`,
        )}
        ${section(
          'Said in sessions, newest first',
          html`<div class="stack">
            ${queryView(sessions, 'the sessions', ({ rows }) =>
              rows.length === 0
                ? html`<p class="quiet">No session has memories of its own.</p>`
                : latestList(rows.slice(0, firstRows)),
            )}
          </div>`,
          html`<a href=${hrefTo('people', encodeURIComponent(user), 'sessions')}>All sessions</a>`,
        )}
      </div>
    </div>
  </div>`
}
