import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Shape } from '#shared/core/shape.ts'

type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'

/** An endpoint of providers that is forwarded without memory. */
export type ProviderRoute = {
  methods: Method[]
  /**
   * As clients call it. `:id` is one segment; `:model` may begin with a provider's prefix. OpenAI's paths are those
   * below the base URL of the provider, without `/v1`; others are forwarded whole.
   */
  path: string
  /** Whose API it is; `shared` is Anthropic's for requests with `anthropic-version`, else OpenAI's. */
  family: ApiFormat | 'shared'
  /**
   * `json` and `form` name a model, which chooses the provider; `either` is one of both. `bytes` are streamed unread.
   * Absent where there is no body.
   */
  body?: 'json' | 'form' | 'either' | 'bytes' | undefined
  /** Counts tokens: without the context block, as the answer states in a header. */
  counts?: boolean
  /** Lists what the provider keeps for the whole account of its key. */
  lists?: boolean
  /** What the contract requires of the body; such a route stands in the contract. */
  shape?: Shape<unknown> | undefined
}

/** Family, methods, path and body of every such endpoint; models with memory are routes of their own. */
const table = `
  openai    POST       /v1/audio/transcriptions form
  openai    POST       /v1/audio/translations form
  openai    POST       /v1/audio/speech json
  openai    POST       /v1/images/generations json
  openai    POST       /v1/images/edits either
  openai    POST       /v1/images/variations form
  openai    POST       /v1/embeddings json
  openai    POST       /v1/moderations json
  openai    POST       /v1/completions json
  openai    POST       /v1/rerank json
  openai    POST       /v1/batches bytes
  openai    GET        /v1/batches lists
  openai    GET        /v1/batches/:id
  openai    POST       /v1/batches/:id/cancel bytes
  openai    POST       /v1/uploads bytes
  openai    POST       /v1/uploads/:id/parts bytes
  openai    POST       /v1/uploads/:id/complete bytes
  openai    POST       /v1/uploads/:id/cancel bytes
  responses POST       /v1/responses/compact json
  responses POST       /v1/responses/input_tokens json counts
  responses GET,DELETE /v1/responses/:id
  responses POST       /v1/responses/:id/cancel bytes
  responses GET        /v1/responses/:id/input_items
  responses POST       /v1/conversations bytes
  responses POST       /v1/conversations/:id bytes
  responses GET,DELETE /v1/conversations/:id
  responses POST       /v1/conversations/:id/items bytes
  responses GET        /v1/conversations/:id/items
  responses GET,DELETE /v1/conversations/:id/items/:item
  shared    POST       /v1/files bytes
  shared    GET        /v1/files lists
  shared    GET,DELETE /v1/files/:id
  shared    GET        /v1/files/:id/content
  shared    GET        /v1/models/:model
  anthropic POST       /v1/messages/count_tokens json counts
  anthropic POST       /v1/messages/batches bytes
  anthropic GET        /v1/messages/batches lists
  anthropic GET,DELETE /v1/messages/batches/:id
  anthropic POST       /v1/messages/batches/:id/cancel bytes
  anthropic GET        /v1/messages/batches/:id/results
  anthropic POST       /v1/complete json
  google    POST       /v1/models/:model:countTokens json counts
  google    POST       /v1/models/:model:embedContent json
  google    POST       /v1/models/:model:batchEmbedContents json
  google    POST       /v1beta/models/:model:countTokens json counts
  google    POST       /v1beta/models/:model:embedContent json
  google    POST       /v1beta/models/:model:batchEmbedContents json
  google    POST       /v1beta/models/:model:asyncBatchEmbedContent json
  google    POST       /v1beta/models/:model:batchGenerateContent json
  google    POST       /v1beta/models/:model:predict json
  google    POST       /v1beta/models/:model:predictLongRunning json
  google    GET        /v1beta/models/:model/operations/:id
  google    GET        /v1beta/models
  google    GET        /v1beta/models/:model
  google    POST       /v1beta/cachedContents bytes
  google    GET        /v1beta/cachedContents lists
  google    PATCH      /v1beta/cachedContents/:id bytes
  google    GET,DELETE /v1beta/cachedContents/:id
  google    POST,PUT   /upload/v1beta/files bytes
  google    POST       /v1beta/files bytes
  google    GET        /v1beta/files lists
  google    GET,DELETE /v1beta/files/:id
  google    GET        /v1beta/files/:id:download
  google    GET        /v1beta/batches lists
  google    GET,DELETE /v1beta/batches/:id
  google    POST       /v1beta/batches/:id:cancel bytes
`

const shapes: Record<string, Shape<unknown>> = {
  '/v1/audio/transcriptions': TranscribeBody,
  '/v1/audio/speech': SpeakBody,
  '/v1/images/generations': DrawImagesBody,
  '/v1/embeddings': EmbedBody,
}

const bodies = ['json', 'form', 'either', 'bytes'] as const

export const providerRoutes: readonly ProviderRoute[] = table
  .trim()
  .split('\n')
  .map(line => {
    const [family, methods, path, ...marks] = line.trim().split(/ +/) as [string, string, string]
    const has = (mark: string): boolean => (marks as string[]).includes(mark)
    return {
      methods: methods.split(',') as Method[],
      path,
      family: family as ProviderRoute['family'],
      body: bodies.find(has),
      counts: has('counts'),
      lists: has('lists'),
      shape: shapes[path],
    }
  })

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
