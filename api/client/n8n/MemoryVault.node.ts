type Field = Record<string, unknown> & { name: string; type: string }

/** A field that some operations have. */
const shown = (operations: string[], field: Field): Field => ({
  ...field,
  displayOptions: { show: { operation: operations } },
})

/** A field whose value is sent in the body, or with `query` in the address. */
const sent = (operations: string[], field: Field, as: object = {}): Field =>
  shown(operations, { ...field, routing: { send: { type: 'body', ...as } } })

const session = {
  displayName: 'Session ID',
  name: 'session',
  type: 'string',
  default: '',
  description: 'A session in place of the core of the vault',
}

/** Left out where it is empty. */
const sessionSent = {
  property: 'session_id',
  value: '={{$value || undefined}}',
}

type Request = { headers?: Record<string, string> }

/** Names the user; an empty header would be refused. */
async function addUser(this: { getNodeParameter(name: string): unknown }, request: Request) {
  const user = String(this.getNodeParameter('user'))
  return user === ''
    ? request
    : { ...request, headers: { ...request.headers, 'X-Memory-User': user } }
}

/** An operation: the request that it sends, and which part of the answer are the items. */
function operation(
  name: string,
  value: string,
  action: string,
  request: object,
  itemsOf?: string,
): object {
  const items = itemsOf && {
    output: { postReceive: [{ type: 'rootProperty', properties: { property: itemsOf } }] },
  }
  return { name, value, action, description: action, routing: { request, ...items } }
}

/** The node: its requests are declared, n8n sends them. It can be given to an AI agent as a tool. */
export class MemoryVault {
  description = {
    displayName: 'Memory Vault',
    name: 'memoryVault',
    icon: 'file:memory-vault.svg',
    group: ['transform'],
    version: 1,
    subtitle: '={{$parameter["operation"]}}',
    description: 'Recall and store what users of an AI product said',
    defaults: { name: 'Memory Vault' },
    inputs: ['main'],
    outputs: ['main'],
    usableAsTool: true,
    credentials: [{ name: 'memoryVaultApi', required: true }],
    requestDefaults: {
      baseURL: '={{$credentials.baseUrl}}',
      headers: { Accept: 'application/json', 'Content-Type': 'application/json' },
    },
    properties: [
      {
        displayName: 'Operation',
        name: 'operation',
        type: 'options',
        noDataExpression: true,
        default: 'recall',
        options: [
          operation('Delete', 'delete', 'Delete memories by their IDs', {
            method: 'POST',
            url: '/v1/memory/delete-ids',
          }),
          operation(
            'List',
            'list',
            'List memories, the newest first',
            { method: 'GET', url: '/v1/memory/list' },
            'items',
          ),
          operation('Recall', 'recall', 'Get a block of memories for a model', {
            method: 'POST',
            url: '/v1/memory/prepare',
          }),
          operation(
            'Search',
            'search',
            'Search memories by meaning and words',
            { method: 'POST', url: '/v1/memory/search' },
            'memories',
          ),
          operation('Store', 'store', 'Store what was said', {
            method: 'POST',
            url: '/v1/memory/ingest',
            qs: { wait: true },
          }),
        ],
      },
      sent(
        ['recall'],
        {
          displayName: 'Message',
          name: 'message',
          type: 'string',
          default: '',
          required: true,
          description: 'What the user asks; the block goes before it',
        },
        { property: 'messages', value: '={{[{ role: "user", content: $value }]}}' },
      ),
      sent(
        ['store'],
        {
          displayName: 'User Message',
          name: 'userMessage',
          type: 'string',
          default: '',
          required: true,
        },
        {
          property: 'messages',
          value:
            '={{[{ role: "user", content: $value }, ...($parameter["answer"] ? [{ role: "assistant", content: $parameter["answer"] }] : [])]}}',
        },
      ),
      shown(['store'], {
        displayName: 'Answer',
        name: 'answer',
        type: 'string',
        default: '',
        description: 'What the model answered',
      }),
      sent(
        ['search'],
        { displayName: 'Query', name: 'query', type: 'string', default: '', required: true },
        { property: 'query' },
      ),
      sent(
        ['search'],
        {
          displayName: 'Limit',
          name: 'limit',
          type: 'number',
          default: 8,
          typeOptions: { minValue: 1 },
          description: 'Max number of results to return',
        },
        { property: 'limit' },
      ),
      sent(
        ['list'],
        {
          displayName: 'Limit',
          name: 'limit',
          type: 'number',
          default: 50,
          typeOptions: { minValue: 1, maxValue: 200 },
          description: 'Max number of results to return',
        },
        { type: 'query', property: 'limit' },
      ),
      sent(
        ['delete'],
        {
          displayName: 'IDs',
          name: 'ids',
          type: 'string',
          default: '',
          required: true,
          description: 'Separated by commas',
        },
        { property: 'ids', value: '={{$value.split(",").map(id => id.trim())}}' },
      ),
      sent(['recall', 'search', 'store'], session, sessionSent),
      {
        displayName: 'User',
        name: 'user',
        type: 'string',
        default: '',
        description:
          'Your ID of the user whose vault it is, with the key that was made with the account',
        routing: { send: { preSend: [addUser] } },
      },
    ],
  }
}
