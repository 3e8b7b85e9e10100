import {
  answered,
  email,
  plain,
  named,
  paged,
  type RequestPlan,
} from '#scripts/lab/prove/requests/request-plan.ts'

const noJob: RequestPlan = { body: () => ({ job_ids: ['00000000-0000-7000-8000-000000000000'] }) }

/** Requests of an owner for the account, and of the operator. */
export const accountRequests: Record<string, RequestPlan> = {
  createKey: {
    ...named,
    makes: 'memoryKeyId',
    keeps: ({ id, key }) => [
      ['memoryKeyId', id],
      ['key', key],
    ],
  },
  listKeys: paged('keysCursor'),
  revokeKey: { query: ({ random }) => ({ erase: String(random() < 0.5) }) },
  account: plain,
  // An id that no user has: tenants keep theirs.
  deleteAccountUser: plain,
  listAccountUsers: { query: () => ({ counts: 'true' }) },
  usageReport: paged('usageCursor', () => ({ group: 'user,session,model', limit: '50' })),
  changeKey: { body: () => ({ daily_requests: 1_000_000 }) },
  remintKey: named,
  rotateKey: { ...named, withOwnKey: true },
  // Applications are made by a browser: see test/api/oauth.
  listApplications: plain,
  disconnectApplication: plain,
  listProviderKeys: plain,
  putProviderKey: { body: ({ word }) => ({ key: `sk-${word}` }) },
  // Refused, so that no provider is called.
  checkProviderKey: { body: () => ({ models: [] }) },
  deleteProviderKey: plain,
  accountPolicy: plain,
  putAccountPolicy: { body: () => ({ redaction: { mode: 'off' }, trace_days: 7 }) },
  accountEvents: paged('eventsCursor', () => ({ limit: '50' })),
  exportAccount: { isRare: true },
  // An email that is not the account's.
  eraseAccount: { body: input => ({ email: email(input) }) },
  createWebhook: {
    makes: 'webhookId',
    body: ({ origin, word }) => ({
      url: `${origin}/${word}`,
      events: ['key.revoked'],
      description: word,
    }),
    keeps: answered('webhookId', 'id'),
  },
  listWebhooks: plain,
  readWebhook: plain,
  changeWebhook: { body: ({ word }) => ({ description: `webhook of ${word}` }) },
  deleteWebhook: plain,
  renewWebhookSecret: plain,
  testWebhook: { keeps: answered('deliveryId', 'id') },
  listWebhookDeliveries: plain,
  replayWebhookDelivery: plain,
  createAdminKey: { makes: 'adminKeyId', body: () => ({}), keeps: answered('adminKeyId', 'id') },
  listAdminKeys: plain,
  revokeAdminKey: plain,

  listTenants: { query: ({ foreignWord }) => ({ q: foreignWord }) },
  changeTenant: { body: () => ({ payment_method: 'card' }) },
  serviceUsage: plain,
  listServiceOperations: plain,
  listQueues: plain,
  readQueueHistory: { query: () => ({ hours: '48' }) },
  listQueueJobs: plain,
  // The id of no job: the work of the tenants goes on.
  readQueueJob: plain,
  sendQueueJob: { body: () => ({ data: {} }) },
  runQueueJobs: noJob,
  cancelQueueJobs: noJob,
  deleteQueueJobs: noJob,
}
