import type { Credential } from '#api/console/app/credential.ts'
import { renderComponent, type View } from '#api/console/app/html.ts'
import {
  Audit,
  Events,
  Instructions,
  Members,
  Orgs,
  Passes,
  People,
  Review,
  Roles,
  Settings,
  SharedMemories,
  Tags,
  ServiceOperations,
  Service,
  Tenants,
  ServiceUsage,
  Connect,
  Consolidate,
  Copy,
  Account,
  Webhooks,
} from '#api/console/app/lazy-pages.ts'
import { Files } from '#api/console/app/vault/files.ts'
import { Keys } from '#api/console/app/vault/keys.ts'
import { Operations } from '#api/console/app/vault/operations.ts'
import { Overview } from '#api/console/app/vault/overview.ts'
import { Policy } from '#api/console/app/vault/policy.ts'
import { Prompt } from '#api/console/app/vault/prompt.ts'
import { Profile } from '#api/console/app/vault/profile.ts'
import { Reflections } from '#api/console/app/vault/reflections.ts'
import { Search } from '#api/console/app/vault/search.ts'
import { Sessions } from '#api/console/app/vault/sessions.ts'
import { Shared } from '#api/console/app/vault/shared.ts'
import { Timeline } from '#api/console/app/vault/timeline.ts'
import { Traces } from '#api/console/app/vault/traces.ts'
import { Usage } from '#api/console/app/vault/usage.ts'

export type NavItem = { name: string; path: readonly string[] }
type NavGroup = { name: string; items: readonly NavItem[] }
type VaultPages = readonly (readonly [
  path: string,
  name: string,
  view: (id: string | undefined) => View,
])[]

const vaultPages: VaultPages = [
  ['overview', 'Overview', () => renderComponent(Overview, {})],
  ['search', 'Search', () => renderComponent(Search, {})],
  ['prompt', 'What the model sees', () => renderComponent(Prompt, {})],
  ['traces', 'Answers', trace => renderComponent(Traces, { trace })],
  ['profile', 'Profile', () => renderComponent(Profile, {})],
  ['timeline', 'Timeline', () => renderComponent(Timeline, {})],
  ['reflections', 'Reflections', () => renderComponent(Reflections, {})],
  ['consolidate', 'Consolidate', () => renderComponent(Consolidate, {})],
  ['sessions', 'Sessions', () => renderComponent(Sessions, {})],
  ['shared', 'Shared', () => renderComponent(Shared, {})],
  ['people', 'People', id => renderComponent(People, { id })],
  ['connect', 'Connect', () => renderComponent(Connect, {})],
  ['usage', 'Usage', () => renderComponent(Usage, {})],
  ['files', 'Upload and export', () => renderComponent(Files, {})],
  ['copy', 'Copy', () => renderComponent(Copy, {})],
  ['operations', 'Operations', () => renderComponent(Operations, {})],
  ['keys', 'Keys', () => renderComponent(Keys, {})],
  ['policy', 'Policy', () => renderComponent(Policy, {})],
  ['webhooks', 'Webhooks', id => renderComponent(Webhooks, { id })],
  ['account', 'Account', () => renderComponent(Account, {})],
]

const inAndOutPaths = new Set(['connect', 'files', 'copy', 'webhooks'])
const accountPaths = new Set(['people', 'usage', 'operations', 'keys', 'policy', 'account'])

/** The groups of the navigation; a page of neither set is about memories. */
const vaultGroups = [
  { name: 'Memory', has: (path: string) => !inAndOutPaths.has(path) && !accountPaths.has(path) },
  { name: 'In and out', has: (path: string) => inAndOutPaths.has(path) },
  { name: 'Account', has: (path: string) => accountPaths.has(path) },
]

const orgPages: readonly (readonly [string, string, (org: string) => View])[] = [
  ['review', 'Review queue', org => renderComponent(Review, { org })],
  ['memories', 'Shared memories', org => renderComponent(SharedMemories, { org })],
  ['members', 'Members', org => renderComponent(Members, { org })],
  ['roles', 'Roles', org => renderComponent(Roles, { org })],
  ['tags', 'Tags', org => renderComponent(Tags, { org })],
  ['instructions', 'Instructions', org => renderComponent(Instructions, { org })],
  ['audit', 'Audit', org => renderComponent(Audit, { org })],
  ['events', 'Events', () => renderComponent(Events, {})],
  ['passes', 'Passes', org => renderComponent(Passes, { org })],
  ['settings', 'Settings', org => renderComponent(Settings, { org })],
]

/** A reviewer sees the queue alone. */
const visibleOrgPages = (reviewer: boolean): typeof orgPages =>
  reviewer ? orgPages.filter(([path]) => path === 'review') : orgPages

/** Pages of the whole account, hidden from keys that may not govern it. */
const ownerOnlyPaths = new Set(['policy', 'webhooks', 'account', 'people'])
/** Pages of members of an organization. */
const memberOnlyPaths = new Set(['shared'])

const visibleVaultPages = ({ owner, member }: Credential): VaultPages =>
  vaultPages.filter(
    ([path]) => (owner || !ownerOnlyPaths.has(path)) && (member || !memberOnlyPaths.has(path)),
  )

const servicePages: readonly (readonly [
  string[],
  string,
  (account: string | undefined) => View,
])[] = [
  [['service'], 'Health and queues', () => renderComponent(Service, {})],
  [['service', 'tenants'], 'Tenants', () => renderComponent(Tenants, {})],
  [['service', 'usage'], 'Usage', () => renderComponent(ServiceUsage, {})],
  [
    ['service', 'operations'],
    'Operations',
    account => renderComponent(ServiceOperations, { account }),
  ],
]

/** The pages that the credential may open. */
export function navGroupsFor(credential: Credential, address: readonly string[]): NavGroup[] {
  const { kind, operator, reviewer } = credential
  if (kind === 'vault') {
    const pages = visibleVaultPages(credential)
    return vaultGroups.map(({ name, has }) => ({
      name,
      items: pages.filter(([path]) => has(path)).map(([path, name]) => ({ name, path: [path] })),
    }))
  }
  const org = orgIdIn(address)
  return [
    {
      name: 'Teams',
      items: [{ name: 'Organizations', path: ['orgs'] }],
    },
    ...(operator
      ? [{ name: 'Service', items: servicePages.map(([path, name]) => ({ name, path })) }]
      : []),
    ...(org
      ? [
          {
            name: 'This organization',
            items: visibleOrgPages(reviewer).map(([path, name]) => ({
              name,
              path: ['orgs', org, path],
            })),
          },
        ]
      : []),
  ]
}

/** The navigation entry of a route, or of a route above it. */
export function currentNavItem(
  groups: readonly NavGroup[],
  address: readonly string[],
): NavItem | undefined {
  const items = groups.flatMap(group => group.items)
  const matching = items.filter(({ path }) => path.every((part, index) => part === address[index]))
  return matching.sort((one, other) => other.path.length - one.path.length)[0] ?? items[0]
}

/** The page of a route; the first page for an unknown route. */
export function pageFor(credential: Credential, address: readonly string[]): View {
  const { kind, operator, reviewer } = credential
  if (kind === 'vault') {
    const pages = visibleVaultPages(credential)
    return (pages.find(([path]) => path === address[0]) ?? pages[0]!)[2](address[1])
  }
  if (operator && address[0] === 'service') {
    const servicePage = servicePages.find(([path]) => path[1] === address[1]) ?? servicePages[0]!
    return servicePage[2](address[2])
  }
  const org = orgIdIn(address)
  if (!org) return renderComponent(Orgs, {})
  const pages = visibleOrgPages(reviewer)
  return (pages.find(([path]) => path === address[2]) ?? pages[0]!)[2](org)
}

const orgIdIn = (address: readonly string[]): string | undefined =>
  address[0] === 'orgs' ? address[1] : undefined
