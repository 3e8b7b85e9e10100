import { useEffect, useState } from 'preact/hooks'
import { commandMenu } from '#api/console/app/command-menu.ts'
import { hrefTo, navigate, useHashPath } from '#api/console/app/address.ts'
import { maskKey, type Credential } from '#api/console/app/credential.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { signOut } from '#api/console/app/login.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { tabList } from '#api/console/app/parts/frame.ts'
import { icon, mark } from '#api/console/app/parts/icon.ts'
import {
  currentPlace,
  navGroupsFor,
  pageFor,
  type NavEntry,
  type NavItem,
} from '#api/console/app/navigation.ts'
import { healthBanner } from '#api/console/app/service/health.ts'
import { TeamsContext, useTeamList, type Teams } from '#api/console/app/teams.ts'
import { ThemeSwitch } from '#api/console/app/theme.ts'

/** The frame of every page: heading, navigation and sign-out. */
export function Shell({ credential }: { credential: Credential }): View {
  const address = useHashPath()
  const [open, setOpen] = useState(false)
  useEffect(() => setOpen(false), [address])
  const teams = useTeamList(credential, address)
  const navGroups = navGroupsFor(credential, address, teams)
  const place = currentPlace(navGroups, address)
  return html`<div class="shell">
    <a
      class="skip"
      href="#main"
      onClick=${(event: Event) => {
        event.preventDefault()
        document.querySelector<HTMLElement>('h1')?.focus()
      }}
      >Skip to content</a
    >
    <header class="bar">
      <button
        type="button"
        class="button button-plain bar-menu"
        aria-expanded=${open}
        aria-controls="places"
        onClick=${() => setOpen(!open)}
      >
        Menu
      </button>
      <a class="brand" href=${hrefTo()}>${mark()} Memory Vault</a>
      ${commandMenu(navGroups)}
      <span
        class="bar-key"
        title=${credential.kind === 'admin' ? 'Admin credential' : 'Memory Key'}
      >
        <span class="unseen">Signed in with</span> <code>${maskKey(credential)}</code>
      </span>
      ${button('Sign out', () => signOut(credential), { kind: 'plain' })}
    </header>
    <div class="columns">
      <div class=${open ? 'side side-open' : 'side'}>
        <nav id="places" class="places" aria-label="Pages">
          ${navGroups.map(({ name, entries, isTeam }, index) =>
            navList(index, isTeam ? teamName(name, teams) : name, entries, place?.entry),
          )}
        </nav>
        <footer class="side-foot stack">
          <a href="/docs">API reference</a> <a href="/guides">Guides</a>
          <a href=${hrefTo('sign-in')}>Use another key</a>
          ${renderComponent(ThemeSwitch, {})}
        </footer>
      </div>
      <main id="main" class="main">
        ${credential.operator && address[0] + (address[1] ?? '') !== 'service' && healthBanner()}
        ${place && place.entry.items.length > 1 && entryTabs(place.entry, place.item)}
        <${TeamsContext.Provider} value=${teams}>${pageFor(credential, address, teams)}<//>
      </main>
    </div>
  </div>`
}

/** The name of the organization that is open; with several, the choice of one, at its home. */
const teamName = (name: string, { list, team }: Teams): Children => {
  const orgs = list.answer?.orgs ?? []
  if (!team || orgs.length < 2) return name
  return html`<span class="field"
    ><select
      aria-label="Organization"
      value=${team.org_id}
      onChange=${(event: Event) => {
        const id = (event.currentTarget as HTMLSelectElement).value
        navigate('orgs', id, 'home')
      }}
    >
      ${orgs.map(
        ({ org_id, name }) =>
          html`<option key=${org_id} value=${org_id} selected=${org_id === team.org_id}>
            ${name}
          </option>`,
      )}
    </select></span
  >`
}

const navList = (
  key: number,
  name: Children,
  entries: readonly NavEntry[],
  current: NavEntry | undefined,
): View =>
  html`<div key=${key}>
    ${name && html`<p class="places-name">${name}</p>`}
    <ul>
      ${entries.map(entry => {
        const { path } = entry.items[0]!
        // The tab of an entry with tabs is the page.
        const state = entry.items.length > 1 ? 'true' : 'page'
        return html`<li key=${path.join('/')}>
          <a href=${hrefTo(...path)} aria-current=${entry === current ? state : undefined}>
            ${icon(path.at(-1)!)} ${entry.name}
          </a>
        </li>`
      })}
    </ul>
  </div>`

/** The pages of an entry, above the page. */
const entryTabs = ({ name, items }: NavEntry, current: NavItem): View =>
  tabList(
    `Pages of ${name}`,
    items.map(item => ({ name: item.name, href: hrefTo(...item.path), isOpen: item === current })),
  )
