import { UserError } from '#api/console/app/api-call.ts'
import { hrefTo, navigate } from '#api/console/app/address.ts'
import {
  lastTabKey,
  setCredential,
  signOutAllTabs,
  type Credential,
} from '#api/console/app/credential.ts'
import { html, type View } from '#api/console/app/html.ts'
import { actionButton } from '#api/console/app/parts/dialogs.ts'
import { queryView } from '#api/console/app/parts/notes.ts'
import { useQuery } from '#api/console/app/queries.ts'

/** The name of the login provider; null where there is none. */
export const loginName = (): string | null =>
  document.querySelector<HTMLMetaElement>('meta[name="login"]')?.content ?? null

type Choice = {
  id: string
  kind: 'admin' | 'owner' | 'member' | 'reviewer'
  name: string | null
  /** For a member: whose organization it is. */
  ownedBy: string | null
  /** Whether the person has not opened it yet. */
  isNew: boolean
}

const choiceTexts: Record<Choice['kind'], (choice: Choice) => string> = {
  admin: () => 'Look after teams',
  owner: ({ name }) => (name === null ? 'Open your vault' : `Open your vault: ${name}`),
  reviewer: ({ name }) => `Review what ${name} shares`,
  member: ({ name, isNew }) => `${isNew ? 'Accept and open the' : 'Open your'} vault at ${name}`,
}

const post = (body: object): RequestInit => ({ method: 'POST', body: JSON.stringify(body) })

type LinkProps = Props & { secret: string; enter: (credential: Credential) => void }

/** Says which vault a link opens, and asks; the link works once. */
export function LinkQuestion({ secret, verify, enter }: LinkProps): View {
  const told = useQuery(
    signal =>
      ask<{ account: string; name: string; key: string }>('links/open', {
        ...post({ secret, look: true }),
        signal,
      }),
    [],
  )
  const isSignedIn = localStorage.getItem(lastTabKey) !== null
  const open = async (): Promise<void> => {
    const { key } = await ask<{ key: string }>('links/open', post({ secret }))
    enter({ ...(await verify(key)), ...(isSignedIn && { alone: true }) })
  }
  return html`<div class="stack">
    ${queryView(
      told,
      'what this link opens',
      ({ account, name, key }) =>
        html`<p>
            This link opens a vault of <bdi>${account}</bdi>, with the key <bdi>${name}</bdi>
            (<code>${key}</code>).
          </p>
          <p>The person who made the link can read what you store there.</p>
          ${isSignedIn && html`<p class="notice">Other tabs stay signed in as they are.</p>`}
          ${actionButton('Open this vault', { act: open })}`,
    )}
    <a href=${hrefTo('sign-in')}>Use a key</a>
  </div>`
}

/** @throws UserError as the service says it. */
async function ask<Answer>(path: string, init?: RequestInit): Promise<Answer> {
  const response = await fetch(`/console/login/${path}`, init)
  const body = (await response.json()) as Answer & { error?: string }
  if (!response.ok) throw new UserError(body.error ?? 'The service did not answer')
  return body
}

type Props = {
  /** Verifies a credential. */
  verify: (key: string) => Promise<Credential>
}

/** What the person who has just signed in may open; the tab gets a credential for one of these. */
export function LoginChoices({ verify }: Props): View {
  const list = useQuery(
    signal => ask<{ email: string; choices: Choice[] }>('choices', { signal }),
    [],
  )
  const open = async (choice: string): Promise<void> => {
    const init = { method: 'POST', body: JSON.stringify({ choice }) }
    const { key } = await ask<{ key: string }>('open', init)
    setCredential({ ...(await verify(key)), login: true })
    navigate()
  }
  return html`<div class="stack">
    ${queryView(list, 'what you may open', ({ email, choices }) =>
      choices.length === 0
        ? html`<p class="notice">Nothing here belongs to ${email}.</p>`
        : html`<p>You are ${email}.</p>
            <div class="stack">
              ${choices.map(
                choice =>
                  html`${
                    choice.isNew &&
                    html`<p class="notice">
                      <bdi>${choice.ownedBy}</bdi> has made a vault for you at
                      <bdi>${choice.name}</bdi>. Its admins hold its key too, and can read what is
                      stored there.
                    </p>`
                  }${actionButton(choiceTexts[choice.kind](choice), { act: () => open(choice.id) })}`,
              )}
            </div>`,
    )}
    <a href=${hrefTo('sign-in')}>Use a key</a>
  </div>`
}

/** Makes a link that opens the console with a key, once. @returns its whole address */
export async function makeLink(key: string, hours: number): Promise<string> {
  const headers = { authorization: `Bearer ${key}` }
  const { path } = await ask<{ path: string }>('links', { ...post({ hours }), headers })
  return location.origin + path
}

/** Signs out all tabs; a credential that a login has made ends. */
export function signOut({ key, login }: Credential): void {
  if (login) {
    const init = { method: 'POST', headers: { authorization: `Bearer ${key}` }, keepalive: true }
    void fetch('/console/login/end', init).catch(() => undefined)
  }
  signOutAllTabs()
}
