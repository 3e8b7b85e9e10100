import { useState } from 'preact/hooks'
import { call } from '#api/console/app/api-call.ts'
import { formatRelativeTime, formatShortDay } from '#api/console/app/format.ts'
import { hrefTo } from '#api/console/app/hash-route.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { chip } from '#api/console/app/parts/chips.ts'
import { textField } from '#api/console/app/parts/fields.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { emptyNote, faultNote, loadingNote, moreButton } from '#api/console/app/parts/query-view.ts'
import { avatar } from '#api/console/app/parts/speaker.ts'
import { useDebounced } from '#api/console/app/use-debounced.ts'
import { usePagedList } from '#api/console/app/use-paged-list.ts'
import { Person } from '#api/console/app/vault/person.ts'
import type { MemoryKey } from '#api/contract/generated/types.ts'

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
  const { items, isLoading, fault, loadMore, refetch } = usePagedList<MemoryKey>(
    (cursor, signal) => {
      const ofUser = asked === '' ? { active: true } : { external_id: asked }
      return call(
        'GET /v1/keys',
        { query: { ...ofUser, limit: 50, ...(cursor && { cursor }) } },
        signal,
      )
    },
    [asked],
  )
  const people = items.filter(({ external_id, active }) => external_id !== null && active)
  return page({
    title: 'People',
    description: 'The users of your product, by your own ids. Each has a vault.',
    children: html`<div class="stack-wide">
      <div class="panel">
        ${textField({
          label: 'Your id of the user',
          type: 'search',
          value: user,
          onValue: setUser,
          maxlength: 256,
          hint: 'The whole id. Empty: everyone.',
        })}
      </div>
      ${faultNote(fault, refetch)}
      ${
        !isLoading &&
        !fault &&
        people.length === 0 &&
        emptyNote(
          asked === '' ? 'No users on these pages' : 'No user has this id',
          'A key made with an id of yours, or a request that names one in X-Memory-User, makes a user.',
        )
      }
      <ul class="plain rows">
        ${people.map(person => html`<li key=${person.id} class="row">${personRow(person)}</li>`)}
      </ul>
      ${isLoading && items.length === 0 ? loadingNote('the users') : moreButton(loadMore, isLoading)}
    </div>`,
  })
}

const personRow = ({ external_id, name, created_at, last_used_at }: MemoryKey): View =>
  html`<div class="row-main">
      <p class="row-title chips">
        ${avatar({ role: 'user', name: external_id! })} ${external_id}
        ${name !== external_id && chip(name)}
      </p>
      <p class="quiet">
        Since ${formatShortDay(created_at)},${' '}
        ${last_used_at === null ? 'never used' : `used ${formatRelativeTime(last_used_at)}`}
      </p>
    </div>
    <a
      class="button"
      href=${hrefTo('people', encodeURIComponent(external_id!))}
      aria-label=${`Open ${external_id}`}
      >Open</a
    >`
