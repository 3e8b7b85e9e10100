import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { Test } from 'tap'
import { createApp } from '#api/app.ts'
import { createHttpServer } from '#api/edge/server.ts'
import type { Quotas } from '#api/edge/rate-limit.ts'
import type { Backend } from '#shared/backend.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import { listen } from '#test/support/start/listen.ts'

/** A service with a login: its address is known before it is opened. */
export async function startOAuthService(
  t: Test,
  { env = {}, quotas }: { env?: Record<string, string>; quotas?: Quotas } = {},
): Promise<{ backend: Backend; base: string }> {
  const front = createServer()
  const base = await listen(t, front)
  const backend = await createTestBackend(t, { env: { PUBLIC_URL: base, ...env } })
  serveAt(front, backend, quotas)
  return { backend, base }
}

function serveAt(front: ReturnType<typeof createServer>, backend: Backend, quotas?: Quotas): void {
  const server = createHttpServer(createApp(backend, quotas))
  front.on('request', (request, response) => void server.emit('request', request, response))
}

/** Another address of a service, with other settings. */
export async function serveWithConfig(
  t: Test,
  backend: Backend,
  changed: Partial<Backend['config']>,
): Promise<string> {
  const front = createServer()
  const publicUrl = await listen(t, front)
  serveAt(front, { ...backend, config: { ...backend.config, publicUrl, ...changed } })
  return publicUrl
}

/** A second process of a service: what it shares is in the database. @returns its address. */
export async function startSecondProcess(t: Test, { config }: Backend): Promise<string> {
  const front = createServer()
  const base = await listen(t, front)
  serveAt(front, await createTestBackend(t, { config }))
  return base
}

export const redirectUri = 'http://127.0.0.1:7777/callback'

/** Registers a public client. @returns its id. */
export async function registerClient(
  base: string,
  metadata: Record<string, unknown> = {},
): Promise<string> {
  const response = await fetch(`${base}/oauth/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      client_name: 'Test client',
      redirect_uris: [redirectUri],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      token_endpoint_auth_method: 'none',
      ...metadata,
    }),
  })
  const body = (await response.json()) as { client_id: string }
  if (response.status !== 201) throw new Error(JSON.stringify(body))
  return body.client_id
}

type Parameters = Record<string, string | undefined>

const urlWith = (address: string, parameters: Parameters): string => {
  const url = new URL(address)
  for (const [name, value] of Object.entries(parameters))
    if (value !== undefined) url.searchParams.set(name, value)
  return url.href
}

/** A browser without scripts: cookies by path, redirects by hand. */
export class FormBrowser {
  /** By name and path, as browsers keep them. */
  readonly #cookies = new Map<string, { name: string; value: string; path: string }>()

  async open(address: string, init: RequestInit = {}): Promise<Response> {
    const { pathname } = new URL(address)
    const cookie = [...this.#cookies.values()]
      .filter(({ path }) => pathname === path || pathname.startsWith(path.replace(/\/?$/, '/')))
      .map(({ name, value }) => `${name}=${value}`)
      .join('; ')
    const headers = { ...(init.headers as Record<string, string>), ...(cookie && { cookie }) }
    const response = await fetch(address, { redirect: 'manual', ...init, headers })
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line)!
      const path = /; path=([^;]*)/i.exec(line)?.[1] ?? '/'
      if (/expires=Thu, 01 Jan 1970/i.test(line)) this.#cookies.delete(`${name};${path}`)
      else this.#cookies.set(`${name};${path}`, { name: name!, value: value!, path })
    }
    return response
  }

  cookieNames(): string[] {
    return [...this.#cookies.values()].map(({ name }) => name)
  }

  submit(
    address: string,
    fields: [string, string][],
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const body = new URLSearchParams(fields)
    return this.open(address, { method: 'POST', body, headers })
  }
}

/** A client on its way through the login. */
export class LoginClient {
  readonly base: string
  readonly clientId: string
  readonly browser = new FormBrowser()
  readonly verifier = randomBytes(32).toString('base64url')
  readonly redirectUri: string

  constructor(base: string, clientId: string, uri = redirectUri) {
    this.base = base
    this.clientId = clientId
    this.redirectUri = uri
  }

  /** Opens the authorization endpoint. */
  authorize(changed: Parameters = {}): Promise<Response> {
    return this.browser.open(
      urlWith(`${this.base}/oauth/authorize`, {
        response_type: 'code',
        client_id: this.clientId,
        redirect_uri: this.redirectUri,
        state: 'a state',
        scope: 'read write delete',
        resource: `${this.base}/mcp`,
        code_challenge: createHash('sha256').update(this.verifier).digest('base64url'),
        code_challenge_method: 'S256',
        ...changed,
      }),
    )
  }

  /** The address of the sign-in page. */
  async begin(changed: Parameters = {}): Promise<string> {
    const response = await this.authorize(changed)
    if (response.status !== 303) throw new Error(`${response.status} ${await response.text()}`)
    return new URL(response.headers.get('location')!, this.base).href
  }

  /** Signs in and allows. @returns where the browser is sent at last. */
  async allow(
    page: string,
    { key, scopes = ['read', 'write', 'delete'], user = '' }: AllowOptions,
  ): Promise<URL> {
    const answer = await this.browser.submit(page, [
      ['key', key],
      ['user', user],
      ['decision', 'allow'],
      ...scopes.map(scope => ['scope', scope] as [string, string]),
    ])
    return this.follow(answer)
  }

  /** Follows the service's own redirects. */
  async follow(response: Response): Promise<URL> {
    if (response.status !== 303) throw new Error(`${response.status} ${await response.text()}`)
    const to = new URL(response.headers.get('location')!, this.base)
    return to.origin === this.base ? this.follow(await this.browser.open(to.href)) : to
  }

  exchange(code: string, changed: Parameters = {}): Promise<TokenAnswer> {
    return this.token({
      grant_type: 'authorization_code',
      code,
      code_verifier: this.verifier,
      redirect_uri: this.redirectUri,
      resource: `${this.base}/mcp`,
      ...changed,
    })
  }

  refresh(refreshToken: string, changed: Parameters = {}): Promise<TokenAnswer> {
    return this.token({ grant_type: 'refresh_token', refresh_token: refreshToken, ...changed })
  }

  async token(parameters: Parameters): Promise<TokenAnswer> {
    const { searchParams } = new URL(
      urlWith('http://form', { client_id: this.clientId, ...parameters }),
    )
    const response = await fetch(`${this.base}/oauth/token`, { method: 'POST', body: searchParams })
    return { status: response.status, body: await response.json() }
  }

  /** The whole way. @returns the tokens. */
  async login(options: AllowOptions, changed: Parameters = {}): Promise<Tokens> {
    const { searchParams } = await this.allow(await this.begin(changed), options)
    const { status, body } = await this.exchange(searchParams.get('code')!)
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body as Tokens
  }
}

type AllowOptions = { key: string; scopes?: string[]; user?: string }

// oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
type TokenAnswer = { status: number; body: any }

type Tokens = { access_token: string; refresh_token: string; scope: string; expires_in: number }

/** One request to `/mcp`, as JSON. */
export async function askMcp(
  base: string,
  token: string,
  { method, params = {}, headers = {} }: { method: string; params?: object; headers?: object },
) {
  const response = await fetch(`${base}/mcp`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
  })
  const challenge = response.headers.get('www-authenticate')
  return { status: response.status, challenge, body: (await response.json()) as McpAnswer }
}

// oxlint-disable-next-line typescript/no-explicit-any -- what a test reads is what it asserts
type McpAnswer = { result?: any; error?: any; hint?: string }

export const useTool = (base: string, token: string, name: string, args: object = {}) =>
  askMcp(base, token, { method: 'tools/call', params: { name, arguments: args } })
