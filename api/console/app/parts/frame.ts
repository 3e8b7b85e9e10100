import { useEffect, useRef } from 'preact/hooks'
import { currentPath, hrefTo, hrefWith, userHref } from '#api/console/app/address.ts'
import { html, renderComponent, type Children, type View } from '#api/console/app/html.ts'
import { useVaultUser } from '#api/console/app/vault-user.ts'
import { teamNotice, useTeams } from '#api/console/app/teams.ts'

type Props = { title: string; description?: Children; actions?: Children; children?: Children }

function PageFrame({ title, description, actions, children }: Props): View {
  const heading = useRef<HTMLHeadingElement>(null)
  const team = useTeams()?.team
  const user = useVaultUser()
  const isOfUsers = currentPath()[0] === 'people'
  // Screen readers begin a new page at its heading.
  useEffect(() => {
    const isTyping = document.activeElement?.closest('.door form')
    if (!isTyping) heading.current?.focus({ preventScroll: true })
    scrollTo(0, 0)
  }, [title])
  useEffect(() => {
    document.title = [title, team?.name ?? user, 'Memory Vault'].filter(Boolean).join(' · ')
  }, [title, team?.name, user])
  return html`<div class="page stack-wide">
    <header class="section-head page-head">
      <div>
        ${team && html`<p class="quiet">${team.name}</p>`}
        ${
          user !== undefined &&
          html`<p class="quiet">
            ${isOfUsers ? html`<a href=${hrefTo('people')}>Users</a>` : html`<a href=${hrefTo('traces')}>Calls</a>`}${title !== user && ' / '}
            ${title !== user && html`<a href=${userHref(user)}>${user}</a>`}
          </p>`
        }
        <h1 tabindex="-1" ref=${heading}>${title}</h1>
        ${description && html`<p class="quiet">${description}</p>`}
      </div>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${user !== undefined && isOfUsers && userTabs(user)} ${team && teamNotice(team)} ${children}
  </div>`
}

/** What there is to see of a user. */
function userTabs(user: string): View {
  const tabs = [
    ['Overview', userHref(user)],
    ['Search', userHref(user, 'search')],
    ['Sessions', userHref(user, 'sessions')],
    ['What the model sees', userHref(user, 'prompt')],
    ['Calls', hrefWith({ user }, 'traces')],
  ] as const
  const here = hrefTo(...currentPath())
  return tabList(
    `Pages of ${user}`,
    tabs.map(([name, href]) => ({ name, href, isOpen: href === here })),
  )
}

type Tab = { name: string; href: string; isOpen: boolean }

const bringIntoView = (tab: HTMLElement | null): void => {
  const bar = tab?.parentElement
  if (tab && bar) bar.scrollLeft = tab.offsetLeft + tab.offsetWidth - bar.clientWidth + 40
}

/** Pages that belong together, in a row. */
export const tabList = (label: string, tabs: readonly Tab[]): View =>
  html`<nav class="page-tabs" aria-label=${label}>
    ${tabs.map(
      ({ name, href, isOpen }) =>
        html`<a
          key=${href}
          href=${href}
          aria-current=${isOpen ? 'page' : undefined}
          ref=${isOpen && bringIntoView}
          >${name}</a
        >`,
    )}
  </nav>`

export const page = (props: Props): View => renderComponent(PageFrame, props)

export const section = (title: string, children: Children, actions?: Children): View =>
  html`<section class="stack">
    <header class="section-head">
      <h2>${title}</h2>
      ${actions && html`<div class="actions">${actions}</div>`}
    </header>
    ${children}
  </section>`

/** What failed, in red where there is any. */
export const failedView = (words: string, isNone: boolean): Children =>
  isNone ? words : html`<span class="fault-words">${words}</span>`

export const figure = (name: string, value: Children, words?: Children): View =>
  html`<div class="figure">
    <dt>${name}</dt>
    <dd class="figure-value">${value}</dd>
    ${words && html`<dd class="quiet">${words}</dd>`}
  </div>`
