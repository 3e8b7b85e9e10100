import { FormBrowser } from '#test/support/start/oauth.ts'

/** Follows redirects up to the first page. */
async function followRedirects(browser: FormBrowser, response: Response): Promise<Response> {
  if (response.status !== 303 && response.status !== 302) return response
  const to = new URL(response.headers.get('location')!, response.url)
  if (to.hash === '#/login') return response
  return followRedirects(browser, await browser.open(to.href))
}

/** Signs in at the provider of `startIdentityProvider`. @returns the last answer of the service. */
export async function signInAt(
  browser: FormBrowser,
  name: string,
  address: string,
): Promise<Response> {
  const page = await followRedirects(browser, await browser.open(address))
  const login: [string, string][] = [
    ['prompt', 'login'],
    ['login', name],
    ['password', 'x'],
  ]
  const consent = await followRedirects(browser, await browser.submit(page.url, login))
  return followRedirects(browser, await browser.submit(consent.url, [['prompt', 'consent']]))
}

export type LoginChoices = {
  email: string
  choices: { id: string; kind: string; name: string | null }[]
  error?: string
}

/** What the person of a browser may open. */
export const readLoginChoices = async (browser: FormBrowser, base: string): Promise<LoginChoices> =>
  (await (await browser.open(`${base}/console/login/choices`)).json()) as LoginChoices

export const openLoginChoice = (
  browser: FormBrowser,
  base: string,
  choice: string,
  headers: Record<string, string> = {},
): Promise<Response> =>
  browser.open(`${base}/console/login/open`, {
    method: 'POST',
    body: JSON.stringify({ choice }),
    headers,
  })

/** Signs in at the console. @returns the credential for a choice of this kind; undefined where there is none. */
export async function enterConsole(
  base: string,
  name: string,
  kind: string,
): Promise<string | undefined> {
  const browser = new FormBrowser()
  await signInAt(browser, name, `${base}/console/login`)
  const { choices } = await readLoginChoices(browser, base)
  const choice = choices.find(one => one.kind === kind)
  if (!choice) return undefined
  return ((await (await openLoginChoice(browser, base, choice.id)).json()) as { key: string }).key
}
