import type { Credential } from '#api/console/app/credential.ts'
import { part, type View } from '#api/console/app/html.ts'
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

export type Place = { name: string; path: readonly string[] }
type Group = { name: string; places: readonly Place[] }
type Named = readonly (readonly [path: string, name: string, view: () => View])[]

const ofVault: Named = [
  ['overview', 'Overview', () => part(Overview, {})],
  ['search', 'Search', () => part(Search, {})],
  ['timeline', 'Timeline', () => part(Timeline, {})],
  ['reflections', 'Reflections', () => part(Reflections, {})],
  ['sessions', 'Sessions', () => part(Sessions, {})],
  ['usage', 'Usage', () => part(Usage, {})],
  ['files', 'Upload and export', () => part(Files, {})],
  ['operations', 'Operations', () => part(Operations, {})],
  ['keys', 'Keys', () => part(Keys, {})],
  ['policy', 'Policy', () => part(Policy, {})],
]

const ofOrg: readonly (readonly [string, string, (org: string) => View])[] = [
  ['review', 'Review queue', org => part(Review, { org })],
  ['memories', 'Shared memories', org => part(SharedMemories, { org })],
  ['members', 'Members', org => part(Members, { org })],
  ['roles', 'Roles', org => part(Roles, { org })],
  ['tags', 'Tags', org => part(Tags, { org })],
  ['instructions', 'Instructions', org => part(Instructions, { org })],
  ['audit', 'Audit', org => part(Audit, { org })],
  ['passes', 'Passes', org => part(Passes, { org })],
  ['settings', 'Settings', org => part(Settings, { org })],
]

/** Of the whole account: what other keys may not see is not shown to them. */
const forOwners = new Set(['policy'])

const openTo = (owner: boolean): Named => ofVault.filter(([path]) => owner || !forOwners.has(path))

const ofService: readonly (readonly [string[], string, (account: string | undefined) => View])[] = [
  [['service'], 'Health and queues', () => part(Service, {})],
  [['service', 'tenants'], 'Tenants', () => part(Tenants, {})],
  [['service', 'usage'], 'Usage', () => part(ServiceUsage, {})],
  [['service', 'operations'], 'Operations', account => part(ServiceOperations, { account })],
]

/** Where one can go from here. */
export function placesOf(
  { kind, operator, owner }: Credential,
  address: readonly string[],
): Group[] {
  if (kind === 'vault') {
    const places = openTo(owner).map(([path, name]) => ({ name, path: [path] }))
    return [{ name: 'Vault', places }]
  }
  const org = orgOf(address)
  return [
    {
      name: 'Teams',
      places: [{ name: 'Organizations', path: ['orgs'] }],
    },
    ...(operator
      ? [{ name: 'Service', places: ofService.map(([path, name]) => ({ name, path })) }]
      : []),
    ...(org
      ? [
          {
            name: 'This organization',
            places: ofOrg.map(([path, name]) => ({ name, path: ['orgs', org, path] })),
          },
        ]
      : []),
  ]
}

/** The place an address is at, or below. */
export function placeAt(groups: readonly Group[], address: readonly string[]): Place | undefined {
  const places = groups.flatMap(group => group.places)
  const around = places.filter(({ path }) => path.every((part, index) => part === address[index]))
  return around.sort((one, other) => other.path.length - one.path.length)[0] ?? places[0]
}

/** What stands at an address; one that is unknown leads to the first page. */
export function pageAt({ kind, operator, owner }: Credential, address: readonly string[]): View {
  if (kind === 'vault') {
    return (openTo(owner).find(([path]) => path === address[0]) ?? ofVault[0]!)[2]()
  }
  if (operator && address[0] === 'service') {
    const found = ofService.find(([path]) => path[1] === address[1]) ?? ofService[0]!
    return found[2](address[2])
  }
  const org = orgOf(address)
  if (!org) return part(Orgs, {})
  return (ofOrg.find(([path]) => path === address[2]) ?? ofOrg[0]!)[2](org)
}

const orgOf = (address: readonly string[]): string | undefined =>
  address[0] === 'orgs' ? address[1] : undefined
