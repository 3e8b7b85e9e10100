import { html, type Html } from '#api/edge/html.ts'
import { pageHead } from '#api/edge/page-head.ts'
import type { ApplicationScope } from '#shared/access/applications.postgres.ts'
import type { LoginChoice } from '#shared/access/login-choices.postgres.ts'

/** A vault or a role that a person may choose at a sign-in. */
export type PresentedChoice = Pick<LoginChoice, 'kind' | 'name' | 'ownedBy' | 'isNew'> & {
  id: string
}

/**
 * The pages load the console's style and nothing else, and no page may frame them.
 *
 * @param formTargets where a form may lead: browsers apply it to redirects, too
 */
export const pagePolicy = (formTargets: readonly string[] = []): string =>
  `default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; ` +
  `form-action ${["'self'", ...formTargets].join(' ')}; frame-ancestors 'none'`

const frame = (title: string, body: Html): string =>
  html`<!doctype html>
    <html lang="en">
      <head>
        ${pageHead(`${title} · Memory Vault`)}
        <link rel="stylesheet" href="/console/style.css" />
      </head>
      <body>
        <div class="door">
          <main class="door-card stack">
            <h1>${title}</h1>
            ${body}
          </main>
        </div>
      </body>
    </html> `.text

export const errorPage = (
  message: string,
  advice = 'Start again in the application that sent you here.',
): string =>
  frame(
    'This did not work',
    html`<p class="fault" role="alert">${message}</p>
      <p>${advice}</p>`,
  )

/** What each right lets an application do. */
const scopeTexts: Record<ApplicationScope, [title: string, text: string]> = {
  read: ['Read', 'search and list memories, and read the profile'],
  write: ['Write', 'store new memories, correct them and make reflections of them'],
  delete: ['Delete', 'remove memories for good'],
}

export type SignInView = {
  clientName: string
  /** The host of the client's metadata document; null for one that has registered itself under a name that it chose. */
  clientHost: string | null
  redirectHost: string
  /** What the client asks for. */
  scopes: readonly ApplicationScope[]
  /** As the person has chosen them before; all that is asked for, when undefined. */
  chosen?: readonly ApplicationScope[]
  user?: string
  /** The id of the sign-in, and the name of the login provider, where there is one. */
  login?: { uid: string; name: string } | undefined
  /** Who has logged in, and the vaults that they may open. */
  person?: { email: string; choices: readonly PresentedChoice[] } | undefined
  /** Why the form is shown again. */
  fault?: string
}

/** The form by which a person signs in and lets a client in. */
export function signInPage(view: SignInView): string {
  const { clientName, clientHost, redirectHost, scopes, chosen = scopes, user = '', fault } = view
  const { login, person } = view
  const origin =
    clientHost === null
      ? html`It chose this name itself. You will be sent to
          <strong><bdi>${redirectHost}</bdi></strong
          >.`
      : html`It is from <strong><bdi>${clientHost}</bdi></strong
          >. You will be sent to <strong><bdi>${redirectHost}</bdi></strong
          >.`
  const described = fault === undefined ? '' : html` fault`
  return frame(
    `Connect ${clientName}`,
    html`<p><strong><bdi>${clientName}</bdi></strong> asks to use a memory vault. ${origin}</p>
${fault === undefined ? '' : html`<p class="fault" role="alert" id="fault">${fault}</p>`}
<form method="post" class="stack" autocomplete="off">
${person && person.choices.length > 0 ? vaultChoices(person) : keyField(described)}
<fieldset class="checks"><legend class="field-label">It may</legend>
${scopes.map(scope => scopeBox(scope, chosen.includes(scope)))}
</fieldset>
<details${user === '' ? '' : html` open`}><summary>The vault of one of your users</summary>
<div class="field stack-close">
<label class="stack-close"><span class="field-label">Id of the user</span>
<input name="user" value="${user}" autocomplete="off" aria-describedby="user-hint"></label>
<span id="user-hint" class="field-hint">Only with the key that was made with the account. Left empty, it is the vault of the key.</span>
</div></details>
<div class="actions">
<button class="button button-main" name="decision" value="allow">Allow</button>
<button class="button" name="decision" value="deny" formnovalidate>Deny</button>
</div>
</form>
${login && !person ? html`<p><a class="button" href="/console/login?application=${login.uid}">Sign in with ${login.name}</a></p>` : ''}
${person && person.choices.length === 0 ? html`<p class="notice">Nothing here belongs to <bdi>${person.email}</bdi>.</p>` : ''}
<p class="quiet">You can take this back at any time: in the console, under Applications.</p>`,
  )
}

const keyField = (described: Html | string): Html =>
  html`<div class="field stack-close">
    <label class="stack-close"
      ><span class="field-label">Memory Key</span>
      <input
        type="password"
        name="key"
        required
        autocomplete="off"
        spellcheck="false"
        placeholder="mk_…"
        aria-describedby="key-hint${described}"
    /></label>
    <span id="key-hint" class="field-hint"
      >The key of your vault, or yours as a member of a team. The application does not get it.</span
    >
  </div>`

/** One that another account has made is never chosen beforehand, until the person has opened it once. */
const vaultChoices = ({ email, choices }: NonNullable<SignInView['person']>): Html => {
  const first = choices.findIndex(({ isNew }) => !isNew)
  return html`<fieldset class="checks">
    <legend class="field-label">You are <bdi>${email}</bdi>: it may use</legend>
    ${choices.map(
      (choice, index) =>
        html`<div class="check">
          <label
            ><input
              type="radio"
              name="choice"
              value="${choice.id}"
              required${index === first ? html` checked` : ''}
            />
            ${describeChoice(choice)}</label
          >
        </div>`,
    )}
  </fieldset>`
}

const describeChoice = ({ kind, name, ownedBy, isNew }: PresentedChoice): Html => {
  if (kind === 'owner') return html`Your vault${name === null ? '' : html`: <bdi>${name}</bdi>`}`
  if (!isNew) return html`Your vault at <bdi>${name}</bdi>`
  return html`The vault at <bdi>${name}</bdi>, which <bdi>${ownedBy}</bdi> has made for you. Its
    admins hold its key too, and can read what is stored there.`
}

const scopeBox = (scope: ApplicationScope, checked: boolean): Html => {
  const [title, text] = scopeTexts[scope]
  return html`<div class="check stack-close">
    <label
      ><input type="checkbox" name="scope" value="${scope}" ${checked ? html` checked` : ''} />
      ${title}: ${text}</label
    >
  </div> `
}
