import type { Test } from 'tap'
import { contractDocument, type Endpoint } from '#api/contract/document.ts'
import { operatorEmail } from '#shared/access/admin.ts'
import { mintId } from '#shared/core/ids.ts'
import { buildAdmin } from '#test/support/start/admin.ts'
import { createTestClient, startTestApi, type TestAnswer } from '#test/support/start/api.ts'
import { createTestBackend } from '#test/support/start/backend.ts'
import {
  accountIdOf,
  countDocuments,
  storedDigests,
  vaultsOfAccount,
} from '#test/support/checks/observe.ts'
import { smallestValue } from '#test/support/checks/schema-faults.ts'

type Ids = Record<string, string>

/** What one field says of another, and names that must mean something. */
const meaningfulOf = (own: Ids): Record<string, object> => ({
  transfer: { destination_key: own.key },
  graft: { destination_key: own.key },
  assignRoles: { team_member_id: 'ann' },
  seedMemories: { text: 'The budget is eight.' },
  changeSharedMemory: { text: 'The budget is eight.' },
  changeKey: { daily_requests: 5 },
  changeOrg: { pipeline_paused: false },
  changeRole: { name: 'Riches' },
  changeTag: { question: 'Is it about riches?' },
  changeUser: { first_name: 'Ann' },
  changeWebhook: { description: 'ours' },
  putAccountPolicy: { verbatim: false },
  putDirectory: { sign_in_hours: 24 },
  putInstructions: { custom: 'Keep what lasts.' },
  changeTenant: { payment_method: 'card' },
  prepare: { messages: [{ role: 'user', content: 'Where is the ferry?' }] },
  ingest: { messages: [{ role: 'user', content: 'Where is the ferry?' }] },
  chat: { model: 'openai/gpt-5' },
  responses: { model: 'openai/gpt-5' },
})

/** One of everything that a path can name; the webhook and the organization are there. */
async function buildResources(base: string, key: string, memoryKey: string): Promise<Ids> {
  const [admin, owner] = [createTestClient(base, key), createTestClient(base, memoryKey)]
  const { body: org } = await admin.post('/v1/orgs', { name: 'Acme' })
  const path = `/v1/orgs/${org.org_id}`
  const made = async (name: string, body: object) =>
    (await admin.post(`${path}/${name}`, body)).body
  const role = await made('roles', { name: 'Money' })
  const user = await made('users', { email: 'ann@example.com' })
  const member = await made('keys', { team_member_id: 'bob' })
  const tag = await made('tags', { label: 'money' })
  const reviewer = await made('reviewers', { email: 'eve@example.com' })
  const token = await made('scim-tokens', { description: 'Okta' })
  const memory = await made('memories', { text: 'The budget is seven.' })
  const { body: mine } = await owner.post('/v1/keys', { name: 'minted' })
  const { body: keys } = await owner.get('/v1/keys')
  const { body: adminKeys } = await admin.get('/v1/account/admin-keys')
  const hook = { url: 'https://example.com/hook', events: ['key.revoked'] }
  const { body: webhook } = await owner.post('/v1/account/webhooks', hook)
  const { body: sent } = await owner.post(`/v1/account/webhooks/${webhook.id}/test`)
  const said = { messages: [{ role: 'user', content: 'The ferry leaves at noon.' }] }
  const { body: ingested } = await owner.post('/v1/memory/ingest', said)
  return {
    orgId: org.org_id,
    roleId: role.role_id,
    userId: user.user_id,
    keyId: member.key_id,
    tagId: tag.tag_id,
    reviewerId: reviewer.reviewer_id,
    tokenId: token.token_id,
    memId: memory.mem_id,
    memoryKeyId: keys.items.find((row: { name: string }) => row.name === 'minted').id,
    adminKeyId: adminKeys.admin_keys[0].admin_key_id,
    webhookId: webhook.id,
    deliveryId: sent.id,
    id: ingested.operation_id,
    key: mine.key,
  }
}
const open: Ids = { provider: 'openai', model: 'gemini-2.5-flash', queue: 'ingest' }

const isClosed = ({ $ref }: { $ref: string }): boolean =>
  contractDocument.$defs[$ref.split('/').at(-1)!]!.additionalProperties === false

/** Forwarded to providers: their bodies are open, and their errors have the form of the family. */
export const isForwarded = ({ body, path }: Endpoint): boolean =>
  body !== undefined && !isClosed(body.schema) && path !== '/v1/memory/upload'

export type EndpointRequest = {
  key?: string
  path?: string
  headers?: Record<string, string>
  body?: unknown
}

/** A service with an operator and another admin, who have one of everything, and valid requests to all endpoints. */
export async function startEveryEndpoint(t: Test) {
  const backend = await createTestBackend(t)
  const { base } = await startTestApi(t, backend)
  const operator = await buildAdmin(backend, operatorEmail(backend.config))
  const stranger = await buildAdmin(backend)
  const own = await buildResources(base, operator.key, operator.memoryKey)
  const theirs = await buildResources(base, stranger.key, stranger.memoryKey)
  const meaningful = meaningfulOf(own)

  const pathOf = ({ path }: Endpoint, ids: Ids = {}): string =>
    path.replaceAll(/:([a-z]\w+)/gi, (part, name) =>
      name === 'generateContent' || name === 'streamGenerateContent'
        ? part
        : encodeURIComponent({ ...own, ...open, ...ids }[name as string] ?? mintId()),
    )

  /** The query of an endpoint: what it needs, and more. */
  const queryOf = ({ query }: Endpoint, more: Readonly<Record<string, string>> = {}): string => {
    const needed = (query ? smallestValue(query) : {}) as Record<string, string>
    const search = new URLSearchParams({ ...needed, ...more }).toString()
    return search && `?${search}`
  }

  /** The key that may do what an endpoint does: of a member, of the account, or of the operator as an admin. */
  const rightKey = ({ path, auth }: Endpoint): string => {
    if (path.startsWith('/v1/shares')) return own.keyId!
    return auth.includes('memory-key') ? operator.memoryKey : operator.key
  }

  function validBody({ body, operation }: Endpoint): unknown {
    if (!body) return undefined
    const valid = { ...(smallestValue(body.schema) as object), ...meaningful[operation] }
    return body.lines ? `${JSON.stringify(valid)}\n` : valid
  }

  /** Sends what an endpoint takes, or that with one thing changed. */
  const ask = (endpoint: Endpoint, request: EndpointRequest): Promise<TestAnswer> => {
    const { key = rightKey(endpoint), headers = {} } = request
    const { path = pathOf(endpoint) + queryOf(endpoint) } = request
    const hasBody = Object.hasOwn(request, 'body')
    const type = endpoint.body?.media[0] ?? (hasBody ? 'application/json' : undefined)
    const sent = hasBody ? request.body : validBody(endpoint)
    return createTestClient(base, key).send(endpoint.method, path, {
      headers: { ...(type && { 'content-type': type }), ...headers },
      ...(sent !== undefined && { body: sent }),
    })
  }

  const account = await accountIdOf(backend, operator.email)
  /** What the stores hold of the operator's account, and every table but the call log, which has refused calls too. */
  const stored = async () => ({
    ...(await storedDigests(backend)),
    'public.call_traces': 'not compared',
    memories: await Promise.all(
      (await vaultsOfAccount(backend, account)).map(vault => countDocuments(backend, vault)),
    ),
  })
  return {
    backend,
    base,
    operator,
    stranger,
    own,
    theirs,
    open,
    account,
    stored,
    pathOf,
    queryOf,
    rightKey,
    validBody,
    ask,
  }
}
