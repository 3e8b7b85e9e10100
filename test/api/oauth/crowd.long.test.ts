import { setTimeout as delay } from 'node:timers/promises'
import t, { type Test } from 'tap'
import { buildKey, createTestClient } from '#test/support/start/api.ts'
import {
  LoginClient,
  registerClient,
  startOAuthService,
  useTool,
} from '#test/support/start/oauth.ts'

/**
 * A crowd of anonymous clients with the limits that the service has: those who have a key, a login or a sign-in under way
 * are never refused, also where all have one address, and behind trusted proxies those neither who begin one.
 */

t.setTimeout(0)

const clients = 60
const post = { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' } }

/** What someone without a credential asks. */
const anonymous: ((base: string, clientId: string) => [path: string, init?: RequestInit])[] = [
  () => ['/v1/models'],
  () => ['/mcp', { method: 'POST', body: '{}' }],
  () => ['/oauth/register', { method: 'POST', body: '{"redirect_uris":["http://127.0.0.1/x"]}' }],
  (_, id) => [`/oauth/authorize?client_id=${id}&response_type=code`],
  (_, id) => [
    '/oauth/token',
    { ...post, body: `grant_type=refresh_token&refresh_token=x&client_id=${id}` },
  ],
  () => ['/.well-known/oauth-authorization-server'],
  () => ['/console/login/callback?code=x&state=y'],
  () => [
    '/v1/memory/search',
    { method: 'POST', body: '{"query":"x"}', headers: { authorization: 'Bearer mk_x' } },
  ],
]

type Count = Record<string, number>
const note = (count: Count, name: string | number): void =>
  void (count[name] = (count[name] ?? 0) + 1)

/** Sends one request of each client in turn. @returns how often which status was answered */
async function flood(
  base: string,
  clientId: string,
  {
    times,
    headersOf,
    pauseMs,
  }: { times: number; headersOf(client: number): Record<string, string>; pauseMs: number },
): Promise<Count> {
  const count: Count = {}
  const ask = async (number: number): Promise<void> => {
    const [path, init] = anonymous[number % anonymous.length]!(base, clientId)
    const named = init?.headers as Record<string, string> | undefined
    const headers = { ...headersOf(number % clients), ...named }
    const response = await fetch(base + path, { redirect: 'manual', ...init, headers })
    await response.arrayBuffer()
    note(count, response.status)
  }
  const open: Promise<void>[] = []
  for (let number = 0; number < times; number++) {
    open.push(ask(number))
    await delay(pauseMs)
  }
  await Promise.all(open)
  return count
}

/** A person with a key and an application, who works until `until`, again and again. */
async function work(
  t: Test,
  { base, key, until }: { base: string; key: string; until: Promise<unknown> },
): Promise<Count> {
  const count: Count = {}
  const client = new LoginClient(base, await registerClient(base))
  let { access_token: token, refresh_token: refresh } = await client.login({ key })
  const api = createTestClient(base, key)
  const crowd = { isGone: false }
  void until.then(() => (crowd.isGone = true))
  const steps: Record<string, () => Promise<number>> = {
    'search with the key': async () =>
      (await api.post('/v1/memory/search', { query: 'the harbour', limit: 5 })).status,
    'tool with the token': async () => (await useTool(base, token, 'stats')).status,
    refresh: async () => {
      const { status, body } = await client.refresh(refresh)
      if (status === 200) ({ access_token: token, refresh_token: refresh } = body)
      return status
    },
    discovery: async () => (await fetch(`${base}/.well-known/oauth-protected-resource/mcp`)).status,
    'a whole login': async () =>
      (await new LoginClient(base, await registerClient(base)).login({ key })) ? 200 : 0,
  }
  while (!crowd.isGone) {
    for (const [name, step] of Object.entries(steps)) {
      const status = await step().catch((error: Error) => error.message)
      note(count, `${name}: ${status}`)
      if (status !== 200) t.fail(`${name}: ${status}`)
    }
    await delay(300)
  }
  return count
}

t.test(`${clients} of one address, ten requests a second, for a minute`, async t => {
  const { backend, base } = await startOAuthService(t, { env: { RATE_LIMITS: 'on' } })
  const id = await registerClient(base)
  const flooded = flood(base, id, { times: 600, headersOf: () => ({}), pauseMs: 100 })
  const key = await buildKey(backend)
  const worked = await work(t, { base, key, until: flooded })
  const answered = await flooded
  process.stdout.write(`${JSON.stringify({ answered, worked })}\n`)
  t.ok(answered[429]! > 0, 'the crowd is')
  t.ok(worked['a whole login: 200']! > 0)
})

t.test(`${clients} of addresses of their own behind a proxy, as fast as they can`, async t => {
  const env = { RATE_LIMITS: 'on', TRUSTED_PROXIES: '1' }
  const { backend, base } = await startOAuthService(t, { env })
  const id = await registerClient(base)
  const headersOf = (client: number) => ({ 'x-forwarded-for': `203.0.113.${client}` })
  const flooded = flood(base, id, { times: 3_000, headersOf, pauseMs: 0 })
  const key = await buildKey(backend)
  const worked = await work(t, { base, key, until: flooded })
  process.stdout.write(`${JSON.stringify({ answered: await flooded, worked })}\n`)
  t.ok(worked['a whole login: 200']! > 0, 'who has another address begins a login, too')
})
