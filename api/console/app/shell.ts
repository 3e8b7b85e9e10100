import { useEffect, useState } from 'preact/hooks'
import { hrefTo, useHashPath } from '#api/console/app/address.ts'
import { maskKey, type Credential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { signOut } from '#api/console/app/login.ts'
import { button } from '#api/console/app/parts/buttons.ts'
import { icon, mark } from '#api/console/app/parts/icon.ts'
import { pageFor, currentNavItem, navGroupsFor, type NavItem } from '#api/console/app/navigation.ts'
import { ThemeSwitch } from '#api/console/app/theme.ts'

/** The frame of every page: heading, navigation and sign-out. */
export function Shell({ credential }: { credential: Credential }): View {
  const address = useHashPath()
  const [open, setOpen] = useState(false)
  useEffect(() => setOpen(false), [address])
  const navGroups = navGroupsFor(credential, address)
  const current = currentNavItem(navGroups, address)
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
          ${navGroups.map(group => navList(group.name, group.items, current))}
        </nav>
        <footer class="side-foot stack">
          <a href="/docs">API reference</a> <a href="/guides">Guides</a>
          ${renderComponent(ThemeSwitch, {})}
        </footer>
      </div>
      <main id="main" class="main">${pageFor(credential, address)}</main>
    </div>
  </div>`
}

const navList = (name: string, items: readonly NavItem[], current: NavItem | undefined): View =>
  html`<div key=${name}>
    <p class="places-name">${name}</p>
    <ul>
      ${items.map(
        item =>
          html`<li key=${item.path.join('/')}>
            <a href=${hrefTo(...item.path)} aria-current=${item === current ? 'page' : undefined}>
              ${icon(item.path.at(-1)!)} ${item.name}
            </a>
          </li>`,
      )}
    </ul>
  </div>`
