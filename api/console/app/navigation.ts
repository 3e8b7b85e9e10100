import type { Credential } from '#api/console/app/credential.ts'
import { renderComponent, type View } from '#api/console/app/html.ts'
import { Audit } from '#api/console/app/org/audit.ts'
import { Instructions } from '#api/console/app/org/instructions.ts'
import { Members } from '#api/console/app/org/members.ts'
import { Orgs } from '#api/console/app/org/orgs.ts'
import { Passes } from '#api/console/app/org/passes.ts'
import { Review } from '#api/console/app/org/review.ts'
import { Roles } from '#api/console/app/org/roles.ts'
import { Settings } from '#api/console/app/org/settings.ts'
import { SharedMemories } from '#api/console/app/org/shared-memories.ts'
import { Tags } from '#api/console/app/org/tags.ts'
import { ServiceOperations } from '#api/console/app/service/operations.ts'
import { Service } from '#api/console/app/service/service.ts'
import { Tenants } from '#api/console/app/service/tenants.ts'
import { ServiceUsage } from '#api/console/app/service/usage.ts'
import { Files } from '#api/console/app/vault/files.ts'
import { Keys } from '#api/console/app/vault/keys.ts'
import { Operations } from '#api/console/app/vault/operations.ts'
import { Overview } from '#api/console/app/vault/overview.ts'
import { Policy } from '#api/console/app/vault/policy.ts'
import { Reflections } from '#api/console/app/vault/reflections.ts'
import { Search } from '#api/console/app/vault/search.ts'
import { Sessions } from '#api/console/app/vault/sessions.ts'
import { Timeline } from '#api/console/app/vault/timeline.ts'
import { Usage } from '#api/console/app/vault/usage.ts'

export type NavItem = { name: string; path: readonly string[] }
type NavGroup = { name: string; items: readonly NavItem[] }
type VaultPages = readonly (readonly [path: string, name: string, view: () => View])[]

const vaultPages: VaultPages = [
  ['overview', 'Overview', () => renderComponent(Overview, {})],
  ['search', 'Search', () => renderComponent(Search, {})],
  ['timeline', 'Timeline', () => renderComponent(Timeline, {})],
  ['reflections', 'Reflections', () => renderComponent(Reflections, {})],
  ['sessions', 'Sessions', () => renderComponent(Sessions, {})],
  ['usage', 'Usage', () => renderComponent(Usage, {})],
  ['files', 'Upload and export', () => renderComponent(Files, {})],
  ['operations', 'Operations', () => renderComponent(Operations, {})],
  ['keys', 'Keys', () => renderComponent(Keys, {})],
  ['policy', 'Policy', () => renderComponent(Policy, {})],
]

const orgPages: readonly (readonly [string, string, (org: string) => View])[] = [
  ['review', 'Review queue', org => renderComponent(Review, { org })],
  ['memories', 'Shared memories', org => renderComponent(SharedMemories, { org })],
  ['members', 'Members', org => renderComponent(Members, { org })],
  ['roles', 'Roles', org => renderComponent(Roles, { org })],
  ['tags', 'Tags', org => renderComponent(Tags, { org })],
  ['instructions', 'Instructions', org => renderComponent(Instructions, { org })],
  ['audit', 'Audit', org => renderComponent(Audit, { org })],
  ['passes', 'Passes', org => renderComponent(Passes, { org })],
  ['settings', 'Settings', org => renderComponent(Settings, { org })],
]

/** Pages of the whole account, hidden from keys that may not govern it. */
const ownerOnlyPaths = new Set(['policy'])

const visibleVaultPages = (owner: boolean): VaultPages =>
  vaultPages.filter(([path]) => owner || !ownerOnlyPaths.has(path))

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
export function navGroupsFor(
  { kind, operator, owner }: Credential,
  address: readonly string[],
): NavGroup[] {
  if (kind === 'vault') {
    const places = visibleVaultPages(owner).map(([path, name]) => ({ name, path: [path] }))
    return [{ name: 'Vault', items: places }]
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
            items: orgPages.map(([path, name]) => ({ name, path: ['orgs', org, path] })),
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
export function pageFor({ kind, operator, owner }: Credential, address: readonly string[]): View {
  if (kind === 'vault') {
    return (visibleVaultPages(owner).find(([path]) => path === address[0]) ?? vaultPages[0]!)[2]()
  }
  if (operator && address[0] === 'service') {
    const found = servicePages.find(([path]) => path[1] === address[1]) ?? servicePages[0]!
    return found[2](address[2])
  }
  const org = orgIdIn(address)
  if (!org) return renderComponent(Orgs, {})
  return (orgPages.find(([path]) => path === address[2]) ?? orgPages[0]!)[2](org)
}

const orgIdIn = (address: readonly string[]): string | undefined =>
  address[0] === 'orgs' ? address[1] : undefined
