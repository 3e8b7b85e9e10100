import { createContext } from 'preact'
import { useContext } from 'preact/hooks'
import { hrefTo } from '#api/console/app/address.ts'
import { call } from '#api/console/app/api-call.ts'
import type { Credential } from '#api/console/app/credential.ts'
import { html, type View } from '#api/console/app/html.ts'
import { buttonLink } from '#api/console/app/parts/buttons.ts'
import { useQuery, type QueryState } from '#api/console/app/queries.ts'
import type { ListedOrganization, ListOrgsAnswer } from '#api/contract/generated/types.ts'

export type Teams = {
  /** The organizations of the admin; of a reviewer the only one. */
  list: QueryState<ListOrgsAnswer>
  /** The organization whose page is open. */
  team: ListedOrganization | undefined
  /** Whether the address names an organization that the admin does not have. */
  isUnknown: boolean
}

/** Loads the organizations of an admin, and again at every address: what stops one is shown on each of its pages. */
export function useTeamList(credential: Credential, address: readonly string[]): Teams {
  const list = useQuery(
    credential.kind === 'admin' ? signal => call('GET /v1/orgs', undefined, signal) : undefined,
    [address.join('/')],
  )
  const id = orgIdIn(address)
  const team = list.answer?.orgs.find(({ org_id }) => org_id === id)
  const isUnknown = id !== undefined && list.answer !== undefined && !list.isLoading && !team
  return { list, team, isUnknown }
}

export const orgIdIn = (address: readonly string[]): string | undefined =>
  address[0] === 'orgs' ? address[1] : undefined

export const TeamsContext = createContext<Teams | undefined>(undefined)

/** Undefined where no team is: in a vault, and before signing in. */
export const useTeams = (): Teams | undefined => useContext(TeamsContext)

/** What keeps an organization from sharing, and where it is mended. */
export const teamNotice = ({ org_id, notice }: ListedOrganization): View | null =>
  notice === null
    ? null
    : html`<div class="notice stack-tight" role="status">
        <p>
          <b>Nothing new is shared:</b> ${notice
            .split(': nothing is shared')[0]!
            .replace(/^The /, 'the ')}.
        </p>
        <div class="actions">
          ${buttonLink(/ no key for /.test(notice) ? 'Add a key' : 'Settings', hrefTo('orgs', org_id, 'settings'))}
        </div>
      </div>`
