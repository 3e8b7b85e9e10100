import { useState } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call, clientWith, filled, UserError } from '#api/console/app/api-call.ts'
import { describeUse, formatCount } from '#api/console/app/format.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { avatar, chip } from '#api/console/app/parts/chips.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page, section } from '#api/console/app/parts/frame.ts'
import { editableList, emptyNote, listView, queryView } from '#api/console/app/parts/notes.ts'
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
import { readOnce } from '#api/console/app/vault/read-once.ts'
import type { AccountUser, ListedMemory, VaultStats } from '#api/contract/generated/types.ts'

/**
 * The users of the account, or one of them.
 *
 * @param id of the user, as the address has it
 */
export const People = ({ id }: { id: string | undefined }): View =>
  id === undefined
    ? renderComponent(AllPeople, {})
    : renderComponent(Person, { user: decodeURIComponent(id), key: id })

function AllPeople(): View {
  const [user, setUser] = useState('')
  const asked = useDebounced(user.trim())
  const list = usePages('GET /v1/account/users', { query: filled({ q: asked, limit: 50 }) })
  const counts = useCall('GET /v1/account/users', { query: { limit: 1 } }).answer
  const count =
    counts && ` ${formatCount(counts.users)} of at most ${formatCount(counts.users_max)}.`
  return page({
    title: 'People',
    description: `The users of your product, by your own ids. Each has a vault.${count ?? ''}`,
    children: html`<div class="panel">
        ${textField({
          label: 'Your id of the user',
          type: 'search',
          value: user,
          onValue: setUser,
          maxlength: 256,
          hint: 'A part of the id. Empty: everyone.',
        })}
      </div>
      ${editableList(list, {
        what: 'the users',
        empty: [
          asked === '' ? 'No users' : 'No id has this in it',
          'A key made with an id of yours, or a request that names one in X-Memory-User, makes a user.',
        ],
        key: ({ key_id }) => key_id,
        main: personView,
        actions: ({ external_id: about, key_id: id, budget }) => [
          budgetButton({ id, about, budget, onChanged: list.refetch }),
          buttonLink('Open', hrefTo('people', encodeURIComponent(about)), { about }),
        ],
      })}`,
  })
}

const personView = ({ external_id, name, active, budget, ...user }: AccountUser): View =>
  html`<p class="row-title chips">
      ${avatar({ role: 'user', name: external_id })} ${external_id}
      ${name !== external_id && chip(name)} ${!active && chip('ended', 'bad')}
    </p>
    <p class="quiet">${describeUse(user.created_at, user.last_used_at)}</p>
    ${budgetView(budget)}`

/** What is remembered of one user: over time, as a profile, and word for word. */
function Person({ user }: { user: string }): View {
  const stats = useQuery(signal => readKnownUser(user, signal), [user])
  return page({
    title: user,
    description: 'A user of your product, opened with the key of the account.',
    actions: buttonLink('All people', hrefTo('people')),
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

/** Looks for the key of a user first: a request about an unknown id could make that user. */
async function readKnownUser(user: string, signal: AbortSignal): Promise<VaultStats> {
  const { items } = await call('GET /v1/keys', { query: { external_id: user, limit: 1 } }, signal)
  if (items.length === 0) throw new UserError('The account has no user of this id')
  return clientWith({ user }).call('GET /v1/memory/stats', { query: { by_day: true } }, { signal })
}

/** Rows are billed: the first look is a short one. */
const firstRows = 5
const moreRows = 20

function KnownPerson({ user, stats }: { user: string; stats: VaultStats }): View {
  const profile = useQuery(
    signal =>
      readOnce(['profile', user, stats], () =>
        clientWith({ user }).call('GET /v1/memory/profile', { query: { limit: 100 } }, { signal }),
      ),
    [user, stats],
  )
  const timeline = usePagedList<ListedMemory>(
    (cursor, signal) => {
      const query = { limit: cursor ? moreRows : firstRows, ...(cursor && { cursor }) }
      return readOnce(['list', user, stats, cursor], () =>
        clientWith({ user }).call('GET /v1/memory/list', { query }, { signal }),
      )
    },
    [user, stats],
  )
  return html`<div class="stack-wide">
    ${vaultFigures(stats, { linked: false })}
    <div class="halves">
      ${section('Profile', queryView(profile, 'the profile', profileView))}
      ${section(
        'Timeline',
        html`<div class="stack">
          ${listView(timeline, { what: 'memories', empty: html`<p></p>`, show: latestList })}
        </div>`,
      )}
    </div>
  </div>`
}
