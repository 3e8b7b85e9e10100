import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Shape } from '#shared/core/shape.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** An endpoint of providers that is forwarded without memory. */
export type ProviderRoute = {
  methods: Method[]
  /**
   * As clients call it. `:id` is one segment; `:model` may begin with a provider's prefix. OpenAI's paths
   * are those below the base URL of the provider, without `/v1`; others are forwarded whole.
   */
  path: string
  /** Whose API it is; `shared` is Anthropic's for requests with `anthropic-version`, else OpenAI's. */
  family: ApiFormat | 'shared'
  /**
   * `json` and `form` name a model, which chooses the provider; `either` is one of both. `bytes` are
   * streamed unread. Absent where there is no body.
   */
  body?: 'json' | 'form' | 'either' | 'bytes'
  /** Counts tokens: without the context block, as the answer says in a header. */
  counts?: true
  /** Lists what the provider keeps for the whole account of its key. */
  lists?: true
  /** What the contract requires of the body; such a route stands in the contract. */
  shape?: Shape<unknown>
}

const openai: ProviderRoute[] = [
  {
    methods: ['POST'],
    path: '/v1/audio/transcriptions',
    family: 'openai',
    body: 'form',
    shape: TranscribeBody,
  },
  { methods: ['POST'], path: '/v1/audio/translations', family: 'openai', body: 'form' },
  { methods: ['POST'], path: '/v1/audio/speech', family: 'openai', body: 'json', shape: SpeakBody },
  {
    methods: ['POST'],
    path: '/v1/images/generations',
    family: 'openai',
    body: 'json',
    shape: DrawImagesBody,
  },
  { methods: ['POST'], path: '/v1/images/edits', family: 'openai', body: 'either' },
  { methods: ['POST'], path: '/v1/images/variations', family: 'openai', body: 'form' },
  { methods: ['POST'], path: '/v1/embeddings', family: 'openai', body: 'json', shape: EmbedBody },
  { methods: ['POST'], path: '/v1/moderations', family: 'openai', body: 'json' },
  { methods: ['POST'], path: '/v1/completions', family: 'openai', body: 'json' },
  { methods: ['POST'], path: '/v1/rerank', family: 'openai', body: 'json' },
  { methods: ['POST'], path: '/v1/batches', family: 'openai', body: 'bytes' },
  { methods: ['GET'], path: '/v1/batches', family: 'openai', lists: true },
  { methods: ['GET'], path: '/v1/batches/:id', family: 'openai' },
  { methods: ['POST'], path: '/v1/batches/:id/cancel', family: 'openai', body: 'bytes' },
  { methods: ['POST'], path: '/v1/uploads', family: 'openai', body: 'bytes' },
  { methods: ['POST'], path: '/v1/uploads/:id/parts', family: 'openai', body: 'bytes' },
  { methods: ['POST'], path: '/v1/uploads/:id/complete', family: 'openai', body: 'bytes' },
  { methods: ['POST'], path: '/v1/uploads/:id/cancel', family: 'openai', body: 'bytes' },
]

const responses: ProviderRoute[] = [
  { methods: ['POST'], path: '/v1/responses/compact', family: 'responses', body: 'json' },
  {
    methods: ['POST'],
    path: '/v1/responses/input_tokens',
    family: 'responses',
    body: 'json',
    counts: true,
  },
  { methods: ['GET', 'DELETE'], path: '/v1/responses/:id', family: 'responses' },
  { methods: ['POST'], path: '/v1/responses/:id/cancel', family: 'responses', body: 'bytes' },
  { methods: ['GET'], path: '/v1/responses/:id/input_items', family: 'responses' },
  { methods: ['POST'], path: '/v1/conversations', family: 'responses', body: 'bytes' },
  { methods: ['POST'], path: '/v1/conversations/:id', family: 'responses', body: 'bytes' },
  { methods: ['GET', 'DELETE'], path: '/v1/conversations/:id', family: 'responses' },
  { methods: ['POST'], path: '/v1/conversations/:id/items', family: 'responses', body: 'bytes' },
  { methods: ['GET'], path: '/v1/conversations/:id/items', family: 'responses' },
  { methods: ['GET', 'DELETE'], path: '/v1/conversations/:id/items/:item', family: 'responses' },
]

const shared: ProviderRoute[] = [
  { methods: ['POST'], path: '/v1/files', family: 'shared', body: 'bytes' },
  { methods: ['GET'], path: '/v1/files', family: 'shared', lists: true },
  { methods: ['GET', 'DELETE'], path: '/v1/files/:id', family: 'shared' },
  { methods: ['GET'], path: '/v1/files/:id/content', family: 'shared' },
  { methods: ['GET'], path: '/v1/models/:model', family: 'shared' },
]

const anthropic: ProviderRoute[] = [
  {
    methods: ['POST'],
    path: '/v1/messages/count_tokens',
    family: 'anthropic',
    body: 'json',
    counts: true,
  },
  { methods: ['POST'], path: '/v1/messages/batches', family: 'anthropic', body: 'bytes' },
  { methods: ['GET'], path: '/v1/messages/batches', family: 'anthropic', lists: true },
  { methods: ['GET', 'DELETE'], path: '/v1/messages/batches/:id', family: 'anthropic' },
  {
    methods: ['POST'],
    path: '/v1/messages/batches/:id/cancel',
    family: 'anthropic',
    body: 'bytes',
  },
  { methods: ['GET'], path: '/v1/messages/batches/:id/results', family: 'anthropic' },
  { methods: ['POST'], path: '/v1/complete', family: 'anthropic', body: 'json' },
]

const google: ProviderRoute[] = [
  ...['/v1', '/v1beta'].flatMap((version): ProviderRoute[] => [
    {
      methods: ['POST'],
      path: `${version}/models/:model:countTokens`,
      family: 'google',
      body: 'json',
      counts: true,
    },
    {
      methods: ['POST'],
      path: `${version}/models/:model:embedContent`,
      family: 'google',
      body: 'json',
    },
    {
      methods: ['POST'],
      path: `${version}/models/:model:batchEmbedContents`,
      family: 'google',
      body: 'json',
    },
  ]),
  {
    methods: ['POST'],
    path: '/v1beta/models/:model:asyncBatchEmbedContent',
    family: 'google',
    body: 'json',
  },
  {
    methods: ['POST'],
    path: '/v1beta/models/:model:batchGenerateContent',
    family: 'google',
    body: 'json',
  },
  { methods: ['POST'], path: '/v1beta/models/:model:predict', family: 'google', body: 'json' },
  {
    methods: ['POST'],
    path: '/v1beta/models/:model:predictLongRunning',
    family: 'google',
    body: 'json',
  },
  { methods: ['GET'], path: '/v1beta/models/:model/operations/:id', family: 'google' },
  { methods: ['GET'], path: '/v1beta/models', family: 'google' },
  { methods: ['GET'], path: '/v1beta/models/:model', family: 'google' },
  { methods: ['POST'], path: '/v1beta/cachedContents', family: 'google', body: 'bytes' },
  { methods: ['GET'], path: '/v1beta/cachedContents', family: 'google', lists: true },
  { methods: ['PATCH'], path: '/v1beta/cachedContents/:id', family: 'google', body: 'bytes' },
  { methods: ['GET', 'DELETE'], path: '/v1beta/cachedContents/:id', family: 'google' },
  { methods: ['POST', 'PUT'], path: '/upload/v1beta/files', family: 'google', body: 'bytes' },
  { methods: ['POST'], path: '/v1beta/files', family: 'google', body: 'bytes' },
  { methods: ['GET'], path: '/v1beta/files', family: 'google', lists: true },
  { methods: ['GET', 'DELETE'], path: '/v1beta/files/:id', family: 'google' },
  { methods: ['GET'], path: '/v1beta/files/:id:download', family: 'google' },
  { methods: ['GET'], path: '/v1beta/batches', family: 'google', lists: true },
  { methods: ['GET', 'DELETE'], path: '/v1beta/batches/:id', family: 'google' },
  { methods: ['POST'], path: '/v1beta/batches/:id:cancel', family: 'google', body: 'bytes' },
]

/** Every endpoint of providers that is forwarded without memory; models with memory are routes of their own. */
export const providerRoutes: readonly ProviderRoute[] = [
  ...openai,
  ...responses,
  ...shared,
  ...anthropic,
  ...google,
]

/** One segment of a path that is no `.` or `..`; a Memory Key is refused later. */
const segment = String.raw`(?!\.+(?:/|$))[A-Za-z0-9_.~-]{1,256}`

/** A model's name, which may hold slashes; `%2F` is one. */
const modelName = String.raw`(?<model>(?!\.+(?:[/:%]|$))[A-Za-z0-9_.~@:-]{1,256}(?:(?:/|%2[Ff])(?!\.+(?:[/:%]|$))[A-Za-z0-9_.~@:-]{1,128}){0,4})`

/** Matches the paths of a route, its model in the group `model`. */
export const routePattern = ({ path }: Pick<ProviderRoute, 'path'>): RegExp =>
  new RegExp(
    `^${path
      .replaceAll('.', String.raw`\.`)
      .replaceAll(/:(id|item|model)/g, (_, name: string) =>
        name === 'model' ? modelName : segment,
      )}$`,
  )
