import rows from '#api/proxy/provider-routes.json' with { type: 'json' }
import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Shape } from '#shared/core/shape.ts'

/** An endpoint of providers that is forwarded without memory. */
export type ProviderRoute = {
  methods: ('GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE')[]
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

const shapes: Record<string, Shape<unknown>> = {
  '/v1/audio/transcriptions': TranscribeBody,
  '/v1/audio/speech': SpeakBody,
  '/v1/images/generations': DrawImagesBody,
  '/v1/embeddings': EmbedBody,
}

/** Every such endpoint; models with memory are routes of their own. */
export const providerRoutes: readonly ProviderRoute[] = (rows as ProviderRoute[]).map(row => ({
  ...row,
  shape: shapes[row.path],
}))

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
