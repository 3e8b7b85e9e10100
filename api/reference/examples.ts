import { readFileSync } from 'node:fs'
import sampleIds from '#api/reference/sample-ids.json' with { type: 'json' }

/** A request that works, as the reference shows it and the tests send it. */
export type Example = {
  path?: Record<string, unknown>
  query?: Record<string, unknown>
  headers?: Record<string, unknown>
  body?: unknown
}

/** An answer of the service to an example. */
export type RecordedAnswer = { status: number; type: string; body: unknown }

/** The answers to the examples by operation, as the test of the examples records them (`ANSWERS=write`). */
export const answers = JSON.parse(
  readFileSync(new URL('generated/answers.json', import.meta.url), 'utf8'),
) as Partial<Record<string, RecordedAnswer>>

/** Ids in the examples, to be replaced by real ones. */
export { sampleIds }

const ids = sampleIds
const inOrg = { orgId: ids.org }
const ofQueue = { queue: 'webhook' }
const ofWebhook = { webhookId: ids.webhook }

const conversation = [
  { role: 'user', content: 'My cat is called Ada and she hates thunder.' },
  { role: 'assistant', content: 'Poor Ada! A covered bed in a quiet room helps many cats.' },
]

const question = 'What is my cat called?'
const asked = [{ role: 'user', content: question }]

const chatBody = { model: 'openai/gpt-5-mini', messages: asked }

const gemini: Example = {
  path: { model: 'gemini-2.5-flash' },
  body: { contents: [{ role: 'user', parts: [{ text: question }] }] },
}

/** By operation. An endpoint that takes nothing needs none. */
export const examples: Partial<Record<string, Example>> = {
  prepare: { body: { messages: asked } },
  ingest: { query: { wait: true }, body: { messages: conversation } },
  search: { body: { query: 'what is my cat called?', limit: 5 } },
  list: { query: { tier: 1, limit: 20, order: 'newest_first' } },
  profile: { query: { kinds: 'name,place,preference', current: true, limit: 20 } },
  listSessions: { query: { limit: 20 } },
  edit: {
    body: {
      memory_id: ids.memory,
      text: 'My cat is called Ada; she hates thunder.',
      expires_at: '2036-01-31T00:00:00Z',
    },
  },
  dateSearch: { body: { from: '2026-01-01', query: 'the cat', max_tokens: 2_000 } },
  upload: {
    body: '{"content":"We moved to Lisbon in May.","role":"user","timestamp":1746100800000}\n',
  },
  storeFile: {
    query: { name: 'lease.txt', file_id: 'lease' },
    body: 'The lease of the flat runs for two years.\n\nThe deposit is 900 euros.\n',
  },
  listFiles: { query: { limit: 20 } },
  deleteFile: { query: { file_id: 'lease' } },
  exportVault: { query: { vectors: false } },
  importVault: {
    query: { dry_run: true },
    body: `${JSON.stringify({
      id: ids.memory,
      tier: 1,
      role: 'user',
      content: 'My cat is called Ada and she hates thunder.',
      timestamp: 1_746_100_800_000,
      session_id: null,
      consolidated: false,
    })}\n`,
  },
  inspect: { body: { memory_id: ids.memory } },
  feedback: { path: { memoryId: ids.memory }, body: { feedback: 'wrong' } },
  feedbackOfMany: {
    body: { metadata: { origin: 'program', run_id: 'r-7' }, feedback: 'wrong', dry_run: true },
  },
  deleteIds: { body: { ids: [ids.memory] } },
  clearMemory: { headers: { 'x-session-id': 'chat-42' } },
  checkout: { body: { tier: 1 } },
  commit: {
    body: {
      batch_id: ids.batch,
      entries: [{ text: 'The user has a cat, Ada, who is afraid of thunder.', importance: 5 }],
    },
  },
  transfer: { body: { destination_key: ids.destinationKey, dry_run: true } },
  graft: {
    body: { destination_key: ids.destinationKey, queries: ['the cat'], threshold: 0.5 },
  },
  reembed: { body: { embeddings: 'openai/text-embedding-3-small' } },
  statsOfKey: { path: { key: ids.destinationKey } },
  createKey: { body: { name: 'Ada', external_id: 'user-17' } },
  rotateKey: { body: { grace_seconds: 3_600 } },
  listKeys: { query: { active: true } },
  listAccountUsers: { query: { counts: true } },
  deleteAccountUser: { path: { externalId: 'user-17' } },
  remintKey: { path: { memoryKeyId: ids.memoryKey } },
  disconnectApplication: { path: { applicationId: ids.operation } },
  changeKey: { path: { memoryKeyId: ids.memoryKey }, body: { daily_requests: 500 } },
  revokeKey: { path: { memoryKeyId: ids.memoryKey } },
  usage: { query: { start: '2026-01-01' } },
  usageReport: { query: { group: 'user', limit: 20 } },
  putProviderKey: { path: { provider: 'openai' }, body: { key: 'sk-proj-0123456789abcdef' } },
  checkProviderKey: { path: { provider: 'openai' }, body: { models: ['gpt-5', 'gpt-5-mini'] } },
  deleteProviderKey: { path: { provider: 'openai' } },
  createAdminKey: { body: { expires_in_days: 90 } },
  revokeAdminKey: { path: { adminKeyId: ids.operation } },
  putAccountPolicy: {
    body: { redaction: { mode: 'redact', kinds: ['secret', 'card'] }, retention_days: 365 },
  },
  orgPolicy: { path: inOrg },
  putOrgPolicy: { path: inOrg, body: { redaction: { mode: 'block' } } },
  accountEvents: { query: { action: 'key.revoked' } },
  exportOrg: { path: inOrg, query: { vectors: false } },
  eraseAccount: { body: { email: 'rosa@example.com' } },
  readReceipt: { path: { receiptId: ids.receipt } },
  createWebhook: {
    body: { url: 'https://example.com/hooks/memory', events: ['operation.finished'] },
  },
  readWebhook: { path: ofWebhook },
  changeWebhook: { path: ofWebhook, body: { active: true } },
  deleteWebhook: { path: ofWebhook },
  renewWebhookSecret: { path: ofWebhook },
  testWebhook: { path: ofWebhook },
  listWebhookDeliveries: { path: ofWebhook, query: { state: 'failed' } },
  replayWebhookDelivery: { path: { ...ofWebhook, deliveryId: ids.delivery } },
  listTenants: { query: { q: 'example.com', limit: 10 } },
  changeTenant: {
    path: { accountId: ids.account },
    body: { payment_method: 'visa', balance: 5_000_000 },
  },
  serviceUsage: { query: { days: 30 } },
  listServiceOperations: { query: { state: 'failed' } },
  listQueueJobs: { path: ofQueue, query: { limit: 20 } },
  readQueueJob: { path: { ...ofQueue, jobId: ids.job } },
  sendQueueJob: { path: ofQueue, body: { payload: { delivery: ids.delivery } } },
  runQueueJobs: { path: ofQueue, body: { job_ids: [ids.job] } },
  cancelQueueJobs: { path: ofQueue, body: { job_ids: [ids.job] } },
  deleteQueueJobs: { path: { queue: 'webhook.dead' }, body: {} },
  listOperations: { query: { limit: 10 } },
  readOperation: { path: { id: ids.operation } },
  cancelOperation: { path: { id: ids.operation } },
  chat: { body: chatBody },
  listTraces: { query: { limit: 20 } },
  listRecalled: { query: { limit: 10 } },
  readTrace: { path: { traceId: ids.trace } },
  responses: { body: { model: 'openai/gpt-5-mini', input: question } },
  anthropicMessages: { body: { model: 'claude-sonnet-5', max_tokens: 500, messages: asked } },
  generateContent: gemini,
  streamGenerateContent: gemini,
  generateContentBeta: gemini,
  streamGenerateContentBeta: gemini,
  embed: { body: { model: 'openai/text-embedding-3-small', input: 'My cat is called Ada.' } },
  speak: { body: { model: 'openai/gpt-4o-mini-tts', voice: 'coral', input: 'Ada is fine.' } },
  drawImages: { body: { model: 'openai/gpt-image-1', prompt: 'A cat under a covered bed' } },
  createOrg: {
    body: {
      name: 'Acme',
      processor_provider: 'openai',
      extract_model: 'gpt-5',
      classify_model: 'gpt-5-mini',
    },
  },
  readOrg: { path: inOrg },
  changeOrg: { path: inOrg, body: { name: 'Acme Research' } },
  createMemberKey: { path: inOrg, body: { team_member_id: 'rosa@example.com' } },
  listMemberKeys: { path: inOrg, query: { q: 'rosa' } },
  readMemberKey: { path: { ...inOrg, keyId: ids.memberKey } },
  revokeMemberKey: { path: { ...inOrg, keyId: ids.memberKey } },
  createTag: {
    path: inOrg,
    body: {
      label: 'finance',
      question: 'Is this about money, budgets or salaries?',
      examples: ['The Q3 budget was cut by a tenth.'],
      negatives: ['The coffee machine is broken.'],
    },
  },
  listTags: { path: inOrg },
  changeTag: { path: { ...inOrg, tagId: ids.tag }, body: { label: 'finances' } },
  deleteTag: { path: { ...inOrg, tagId: ids.tag } },
  applyTag: { path: { ...inOrg, tagId: ids.tag }, body: { dry_run: true } },
  readTagRun: { path: { ...inOrg, tagId: ids.tag } },
  createReviewer: { path: inOrg, body: { email: 'reviewer@example.com' } },
  listReviewers: { path: inOrg },
  readDirectory: { path: inOrg },
  putDirectory: {
    path: inOrg,
    body: { grants: [{ group: 'Finance', role_ids: [ids.role], reviews: true }] },
  },
  createScimToken: { path: inOrg, body: { description: 'Okta' } },
  listScimTokens: { path: inOrg },
  removeScimToken: { path: { ...inOrg, tokenId: ids.scimToken } },
  removeReviewer: { path: { ...inOrg, reviewerId: ids.reviewer } },
  changeSharing: { body: { shares: false } },
  withdrawShared: { path: { statementId: ids.statement } },
  createRole: { path: inOrg, body: { name: 'Accounting', allowed_tags: ['finance'] } },
  listRoles: { path: inOrg },
  changeRole: { path: { ...inOrg, roleId: ids.role }, body: { allowed_tags: ['*'] } },
  deleteRole: { path: { ...inOrg, roleId: ids.role } },
  createUser: {
    path: inOrg,
    body: { email: 'ben@example.com', first_name: 'Ben', last_name: 'Okoro', role_ids: [ids.role] },
  },
  listUsers: { path: inOrg },
  changeUser: { path: { ...inOrg, userId: ids.user }, body: { first_name: 'Benjamin' } },
  deleteUser: { path: { ...inOrg, userId: ids.user } },
  assignRoles: {
    path: inOrg,
    body: { team_member_id: 'rosa@example.com', role_ids: [ids.role] },
  },
  mintUserKey: { path: { ...inOrg, userId: ids.user } },
  putInstructions: {
    path: inOrg,
    body: {
      default_on: true,
      custom: 'Keep decisions and their reasons.',
      anti_rules: [{ match: 'salary', note: 'never store salaries' }],
    },
  },
  readInstructions: { path: inOrg },
  tryText: {
    path: inOrg,
    body: { text: 'We cut the Q3 budget by a fifth.', user_id: ids.user },
  },
  seedMemories: {
    path: inOrg,
    body: { text: 'The Q3 budget was cut by a tenth.', tags: ['finance'] },
  },
  listSharedMemories: { path: inOrg, query: { q: 'budget' } },
  searchAsMember: { path: inOrg, body: { user_id: ids.user, query: 'the budget' } },
  changeSharedMemory: {
    path: { ...inOrg, memId: ids.sharedMemory },
    body: { text: 'The Q3 budget was cut by a fifth.' },
  },
  deleteSharedMemory: { path: { ...inOrg, memId: ids.sharedMemory } },
  memoryAudit: { path: { ...inOrg, memId: ids.sharedMemory } },
  orgAudit: { path: inOrg, query: { action: 'create' } },
  orgUsage: { path: inOrg },
  orgOverview: { path: inOrg },
  redrivePipeline: { path: inOrg },
  reviewQueue: { path: inOrg, query: { threshold: 0.6 } },
  reviewMemory: { path: { ...inOrg, memId: ids.sharedMemory }, body: { action: 'approve' } },
  memoryHistory: { path: { ...inOrg, memId: ids.sharedMemory } },
  restoreMemory: { path: { ...inOrg, memId: ids.sharedMemory } },
  undoReview: { path: { ...inOrg, memId: ids.sharedMemory } },
  debugPasses: { path: inOrg, query: { limit: 20 } },
  deleteOrg: { path: inOrg },
}
