import type { Context } from 'koa'
import { decodeHeader } from '#api/edge/request.ts'
import { tooManyFields } from '#shared/core/refusals.ts'
import {
  parseMetadata,
  parseMetadataFilter,
  parseMetadataObject,
  type Metadata,
  type MetadataFilter,
} from '#shared/domain/metadata.ts'
import { redactMetadata } from '#shared/privacy/apply-redaction.ts'
import type { Caller } from '#shared/access/caller.ts'

export type CallMetadata = {
  /** Fields of every memory of the exchange, as they may be stored. */
  metadata: Metadata | undefined
  /** The model is told only memories with such metadata. */
  filter: MetadataFilter | undefined
}

/**
 * The headers `X-Memory-Metadata` and `X-Memory-Filter`: JSON in UTF-8, or in Latin-1.
 *
 * @throws Refusal `invalid` for anything but such metadata, and for metadata that the redaction policy of
 *   the key blocks.
 */
export function parseMetadataHeaders(
  ctx: Context,
  { keyRow }: Pick<Caller, 'keyRow'>,
): CallMetadata {
  const metadata = parseMetadata(readObject(ctx, metadataHeader), metadataHeader)
  const filter = parseMetadataFilter(readObject(ctx, filterHeader), filterHeader)
  return { metadata: redactMetadata(keyRow.redaction ?? null, metadata), filter }
}

const metadataHeader = 'X-Memory-Metadata'
const filterHeader = 'X-Memory-Filter'
/** Characters; Node takes 16 KiB of headers in all. */
const lengthMax = 8192

function readObject(ctx: Context, name: string): Record<string, unknown> | undefined {
  const text = decodeHeader(ctx.get(name)).trim()
  if (text === '') return undefined
  if (text.length <= lengthMax) return parseMetadataObject(text, name)
  throw tooManyFields(`${name} has more than ${lengthMax} characters`)
}
