import { useEffect, useState } from 'preact/hooks'
import { hrefTo, userHref } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import { currentCredential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import type { NavGroup } from '#api/console/app/navigation.ts'
import { dialog } from '#api/console/app/parts/dialogs.ts'
import { onSubmit, textField } from '#api/console/app/parts/fields.ts'
import { useDebounced, useQuery } from '#api/console/app/queries.ts'

type Place = { name: string; group: string; href: string }

const shownMax = 10

/** Pages and users by their names: Ctrl-K, or ⌘K, opens it. */
export const commandMenu = (groups: readonly NavGroup[]): View =>
  renderComponent(CommandMenu, { groups })

function CommandMenu({ groups }: { groups: readonly NavGroup[] }): View {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey)) return
      event.preventDefault()
      setOpen(true)
    }
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [])
  return html`<button type="button" class="button bar-find" onClick=${() => setOpen(true)}>
      <span>Go to …</span><kbd>Ctrl K</kbd>
    </button>
    ${isOpen && renderComponent(Places, { groups, onClose: () => setOpen(false) })}`
}

function Places({ groups, onClose }: { groups: readonly NavGroup[]; onClose: () => void }): View {
  const [words, setWords] = useState('')
  const asked = useDebounced(words.trim())
  const findsUsers = asked !== '' && currentCredential()?.owner === true
  const users = useQuery(
    findsUsers
      ? signal => call('GET /v1/account/users', { query: { q: asked, limit: 5 } }, signal)
      : undefined,
    [asked],
  )
  const pages = groups.flatMap(({ entries, name: team }) =>
    entries.flatMap(({ name: entry, items }) =>
      items.map(({ name, path }): Place => {
        const above = [team, ...(items.length > 1 ? [entry] : [])].filter(Boolean).join(', ')
        return { name, group: above, href: hrefTo(...path) }
      }),
    ),
  )
  const wanted = words.trim().toLowerCase()
  const found = pages.filter(({ name, group }) => `${name} ${group}`.toLowerCase().includes(wanted))
  const people = (findsUsers ? (users.answer?.items ?? []) : []).map(
    ({ external_id: name }): Place => ({ name, group: 'Users', href: userHref(name) }),
  )
  const calls: Place[] =
    findsUsers && /^[0-9a-f-]{36}$/.test(asked)
      ? [{ name: asked, group: 'Call', href: hrefTo('traces', asked) }]
      : []
  const places = [...calls, ...found, ...people].slice(0, shownMax)
  const go = (href: string | undefined): void => {
    if (href === undefined) return
    location.hash = href
    onClose()
  }
  return dialog({
    title: 'Go to',
    onClose,
    children: html`<form class="stack" onSubmit=${onSubmit(() => go(places[0]?.href))}>
      ${textField({
        label: 'Page, user or trace of a call',
        type: 'search',
        value: words,
        onValue: setWords,
        autocomplete: 'off',
      })}
      <ul class="plain places" aria-label="Found">
        ${places.map(
          ({ name, group, href }) =>
            html`<li key=${href}>
              <a
                href=${href}
                onClick=${(event: Event) => {
                  event.preventDefault()
                  go(href)
                }}
                >${name} <span class="quiet">${group}</span></a
              >
            </li>`,
        )}
      </ul>
      <p class="quiet" role="status">
        ${places.length === 0 ? 'Nothing of this name.' : 'Enter opens the first.'}
      </p>
    </form>`,
  })
}
