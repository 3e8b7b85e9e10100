import type { FunctionComponent } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { toFault, type Fault } from '#api/console/app/api-call.ts'
import { hrefTo } from '#api/console/app/address.ts'
import type { Credential } from '#api/console/app/credential.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { page } from '#api/console/app/parts/frame.ts'
import { faultNote, loadingNote } from '#api/console/app/parts/notes.ts'
import { useOnline } from '#api/console/app/queries.ts'
import { orgIdIn, type Teams } from '#api/console/app/teams.ts'
import { Keys } from '#api/console/app/vault/keys.ts'
import { Operations } from '#api/console/app/vault/operations.ts'
import { Overview } from '#api/console/app/vault/overview.ts'
import { Policy } from '#api/console/app/vault/policy.ts'
import { Profile } from '#api/console/app/vault/profile.ts'
import { Reflections } from '#api/console/app/vault/reflections.ts'
import { Search } from '#api/console/app/vault/search.ts'
import { Sessions } from '#api/console/app/vault/sessions.ts'
import { Shared } from '#api/console/app/vault/shared.ts'
import { Timeline } from '#api/console/app/vault/timeline.ts'
import { Traces } from '#api/console/app/vault/traces.ts'
import { Usage } from '#api/console/app/vault/usage.ts'

export type NavItem = { name: string; path: readonly string[] }
/** An entry of the navigation: one page, or several, which are tabs above the page. */
export type NavEntry = { name: string; items: readonly NavItem[] }
export type NavGroup = {
  name: string
  entries: readonly NavEntry[]
  /** The pages are of one of the admin's organizations. */
  isTeam?: boolean
}

/** Props of pages that show one of several things: what follows the path of the page. */
type IdProps = { id: string | undefined; part?: string }
/** A page that takes an id, or a part of what the id names, says so; any other ends its address. */
type Page<Props = object> =
  | readonly [path: string, name: string, page: FunctionComponent<Props>]
  | readonly [
      path: string,
      name: string,
      page: FunctionComponent<Props & IdProps>,
      takes: 'takes an id' | 'takes an id and a part',
    ]

/**
 * A page whose modules the browser loads when it is opened for the first time.
 *
 * @param load imports the module that exports the page by its name
 */
function lazyPage<Name extends string, Props extends object>(
  name: Name,
  load: () => Promise<Record<Name, FunctionComponent<Props>>>,
): FunctionComponent<NoInfer<Props>> {
  let loaded: FunctionComponent<Props> | undefined
  return function LazyPage(props: Props): View | null {
    const [Page, setPage] = useState(() => loaded)
    const [fault, setFault] = useState<Fault>()
    const [attempt, setAttempt] = useState(0)
    useEffect(() => {
      if (loaded) return
      setFault(undefined)
      load().then(
        module => {
          loaded = module[name]
          setPage(() => loaded)
        },
        (error: unknown) => setFault(toFault(error)),
      )
    }, [attempt])
    const again = (): void => setAttempt(attempt + 1)
    useOnline(fault, again)
    if (Page) return renderComponent(Page, props)
    return fault ? faultNote(fault, again) : loadingNote('the page', 'page')
  }
}

const Orgs = lazyPage('Orgs', () => import('#api/console/app/org/orgs.ts'))
const Admins = lazyPage('Admins', () => import('#api/console/app/org/admins.ts'))
const Connect = lazyPage('Connect', () => import('#api/console/app/vault/connect/connect.ts'))
const Playground = lazyPage('Playground', () => import('#api/console/app/vault/playground.ts'))
const Files = lazyPage('Files', () => import('#api/console/app/vault/files.ts'))
const Team = lazyPage('Team', () => import('#api/console/app/vault/team.ts'))
const Copy = lazyPage('Copy', () => import('#api/console/app/vault/copy.ts'))
const People = lazyPage('People', () => import('#api/console/app/vault/people.ts'))
const Webhooks = lazyPage('Webhooks', () => import('#api/console/app/vault/webhooks.ts'))
const Applications = lazyPage(
  'Applications',
  () => import('#api/console/app/vault/applications.ts'),
)
const Home = lazyPage('Home', () => import('#api/console/app/vault/home.ts'))
const Providers = lazyPage('Providers', () => import('#api/console/app/vault/providers.ts'))
const History = lazyPage<'History', object>(
  'History',
  () => import('#api/console/app/vault/account-events.ts'),
)
const Account = lazyPage('Account', () => import('#api/console/app/vault/account.ts'))

/** Pages by the entry of the navigation that has them. */
const vaultPages: Record<string, readonly Page[]> = {
  Home: [['home', 'Home', Home]],
  Memory: [
    ['overview', 'Overview', Overview],
    ['search', 'Search', Search],
    ['timeline', 'Timeline', Timeline],
    ['sessions', 'Sessions', Sessions],
    ['profile', 'Profile', Profile],
    ['reflections', 'Reflections', Reflections],
    ['team', 'Team', Team],
    ['shared', 'Shared by you', Shared],
    ['files', 'Upload and export', Files],
    ['copy', 'Copy', Copy],
  ],
  Users: [['people', 'Users', People, 'takes an id and a part']],
  Calls: [
    ['traces', 'Calls', Traces, 'takes an id and a part'],
    ['operations', 'Work', Operations],
  ],
  Usage: [['usage', 'Usage', Usage]],
  Playground: [['playground', 'Playground', Playground]],
  Connect: [['connect', 'Connect', Connect]],
  Settings: [
    ['keys', 'Keys', Keys],
    ['providers', 'Model providers', Providers],
    ['webhooks', 'Webhooks', Webhooks, 'takes an id'],
    ['policy', 'Policy', Policy],
    ['applications', 'Applications', Applications],
    ['history', 'History', History],
    ['account', 'Account', Account],
  ],
}

/** Pages of what a member shares with a team. */
const memberOnly = new Set(['team', 'shared'])

/** Pages of the whole account, hidden from keys that may not govern it. */
const ownerOnly = new Set('home policy webhooks account people providers history'.split(' '))

const visibleVaultPages = (
  { owner, member }: Credential,
  pages: readonly Page[],
): readonly Page[] =>
  pages.filter(([path]) => (owner || !ownerOnly.has(path)) && (member || !memberOnly.has(path)))

const OrgHome = lazyPage('Home', () => import('#api/console/app/org/home.ts'))
const Review = lazyPage('Review', () => import('#api/console/app/org/review.ts'))
const SharedMemories = lazyPage(
  'SharedMemories',
  () => import('#api/console/app/org/shared-memories.ts'),
)
const SeeAs = lazyPage('SeeAs', () => import('#api/console/app/org/see-as.ts'))
const Members = lazyPage('Members', () => import('#api/console/app/org/members.ts'))
const Roles = lazyPage('Roles', () => import('#api/console/app/org/roles.ts'))
const Tags = lazyPage('Tags', () => import('#api/console/app/org/tags.ts'))
const Instructions = lazyPage('Instructions', () => import('#api/console/app/org/instructions.ts'))
const Trial = lazyPage('Trial', () => import('#api/console/app/org/trial.ts'))
const Passes = lazyPage('Passes', () => import('#api/console/app/org/passes.ts'))
const Audit = lazyPage('Audit', () => import('#api/console/app/org/audit.ts'))
const Events = lazyPage('Events', () => import('#api/console/app/vault/account-events.ts'))
const OrgSettings = lazyPage('Settings', () => import('#api/console/app/org/settings.ts'))

const orgPages: Record<string, readonly Page<{ org: string }>[]> = {
  Home: [['home', 'Home', OrgHome]],
  'Review queue': [['review', 'Review queue', Review]],
  Memories: [
    ['memories', 'Shared memories', SharedMemories],
    ['see-as', 'See as a member', SeeAs],
  ],
  Members: [
    ['members', 'Members', Members],
    ['roles', 'Roles', Roles],
  ],
  'What is shared': [
    ['tags', 'Tags', Tags],
    ['instructions', 'Instructions', Instructions],
    ['trial', 'Try a text', Trial],
    ['passes', 'Passes', Passes],
  ],
  Audit: [
    ['audit', 'Audit', Audit],
    ['events', 'Events', Events],
  ],
  Settings: [['settings', 'Settings', OrgSettings]],
}

/** A reviewer sees the queue alone. */
const visibleOrgPages = (
  { reviewer }: Credential,
  pages: readonly Page<{ org: string }>[],
): readonly Page<{ org: string }>[] =>
  reviewer ? pages.filter(([path]) => path === 'review') : pages

const Service = lazyPage('Service', () => import('#api/console/app/service/service.ts'))
const Queues = lazyPage('Queues', () => import('#api/console/app/service/queues.ts'))
const tenants = () => import('#api/console/app/service/tenants.ts')
const ServiceOperations = lazyPage('ServiceOperations', tenants)

const servicePages: readonly Page[] = [
  ['', 'Health', Service],
  ['queues', 'Queues', Queues, 'takes an id'],
  ['tenants', 'Tenants', lazyPage<'Tenants', object>('Tenants', tenants)],
  ['usage', 'Usage', lazyPage<'ServiceUsage', object>('ServiceUsage', tenants)],
  ['operations', 'Operations', ServiceOperations, 'takes an id'],
]

const navItems = (
  pages: readonly (readonly [path: string, name: string, ...unknown[]])[],
  ...above: string[]
): NavItem[] =>
  pages.map(([path, name]) => ({ name, path: path === '' ? above : [...above, path] }))

/** Entries with a page that may be opened. */
const entriesOf = <P extends readonly [path: string, name: string, ...unknown[]]>(
  pages: Record<string, readonly P[]>,
  visible: (pages: readonly P[]) => readonly P[],
  ...above: string[]
): NavEntry[] =>
  Object.entries(pages)
    .map(([name, all]) => ({ name, items: navItems(visible(all), ...above) }))
    .filter(({ items }) => items.length > 0)

/** The pages that the credential may open. */
export function navGroupsFor(
  credential: Credential,
  address: readonly string[],
  { team, isUnknown }: Teams,
): NavGroup[] {
  if (credential.kind === 'vault') {
    return [
      { name: '', entries: entriesOf(vaultPages, pages => visibleVaultPages(credential, pages)) },
    ]
  }
  const org = orgIdIn(address)
  const items = [
    { name: 'Organizations', path: ['orgs'] },
    ...(credential.reviewer ? [] : [{ name: 'Admins', path: ['admins'] }]),
  ]
  const service = { name: 'Service', items: navItems(servicePages, 'service') }
  return [
    {
      name: '',
      entries: [{ name: 'Organizations', items }, ...(credential.operator ? [service] : [])],
    },
    ...(org && !isUnknown
      ? [
          {
            name: team?.name ?? 'Organization',
            isTeam: true,
            entries: entriesOf(orgPages, pages => visibleOrgPages(credential, pages), 'orgs', org),
          },
        ]
      : []),
  ]
}

/** The entry and the page of a route, or of a route above it; the first ones for no route at all. */
export function currentPlace(
  groups: readonly NavGroup[],
  address: readonly string[],
): { entry: NavEntry; item: NavItem } | undefined {
  const places = groups.flatMap(({ entries }) =>
    entries.flatMap(entry => entry.items.map(item => ({ entry, item }))),
  )
  const matching = places.filter(({ item }) =>
    item.path.every((part, index) => part === address[index]),
  )
  return (
    matching.sort((one, other) => other.item.path.length - one.item.path.length)[0] ??
    (address.length === 0 ? places[0] : undefined)
  )
}

/** The page of a route; the first page for no route at all. */
export function pageFor(
  credential: Credential,
  address: readonly string[],
  { isUnknown }: Teams,
): View {
  const [place, org, ...rest] = address
  if (credential.kind === 'vault') {
    const pages = visibleVaultPages(credential, Object.values(vaultPages).flat())
    return pageView(pages, address, {})
  }
  if (credential.operator && place === 'service') {
    return pageView(servicePages, address.slice(1), {})
  }
  if (place === 'admins' && org === undefined && !credential.reviewer) {
    return renderComponent(Admins, {})
  }
  if (place !== undefined && place !== 'orgs') return unknownPage()
  if (isUnknown) return unknownOrg()
  return org === undefined
    ? renderComponent(Orgs, {})
    : pageView(visibleOrgPages(credential, Object.values(orgPages).flat()), rest, { org })
}

/** @param address below the pages: the path of one, and the id that it takes. */
function pageView<Props extends object>(
  pages: readonly Page<Props>[],
  [path, ...beyond]: readonly string[],
  props: NoInfer<Props>,
): View {
  const found = path === undefined ? pages[0] : pages.find(([one]) => one === path)
  const takes = found?.[3]
  const beyondMax = takes === 'takes an id and a part' ? 2 : takes ? 1 : 0
  if (!found || beyond.length > beyondMax) return unknownPage()
  // Each organization has pages of its own: what one has loaded is not shown for another.
  const key = 'org' in props ? String(props.org) : ''
  const [id, part] = beyond
  const idProps = { id, ...(part !== undefined && { part }) }
  return renderComponent(found[2] as FunctionComponent<Props & IdProps>, {
    ...props,
    ...idProps,
    key,
  })
}

const unknownPage = (): View =>
  page({
    title: 'There is no such page',
    description: 'Or this credential does not open it.',
    children: html`<p><a href=${hrefTo()}>Go to the first page</a></p>`,
  })

const unknownOrg = (): View =>
  page({
    title: 'There is no such organization',
    description: 'It is removed, or another admin has it.',
    children: html`<p><a href=${hrefTo('orgs')}>Go to your organizations</a></p>`,
  })
