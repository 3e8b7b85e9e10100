import type { ErrorBody, ExportLine } from '#api/contract/generated/types.ts'
import { credentialHeaders, type ServiceConnection } from '#scripts/service-connection.ts'
import { Refusal } from '#shared/core/errors.ts'
import { splitLines } from '#shared/vault/bulk/split-lines.ts'

const unlimited = { lineBytesMax: Infinity, bytesMax: Infinity, linesMax: Infinity }

/**
 * The memories of a vault as `GET /v1/memory/export` streams them.
 *
 * @throws Refusal with the error of the service when it refuses, and when the stream breaks off.
 */
export async function* downloadVault(connection: ServiceConnection): AsyncGenerator<ExportLine> {
  const headers = credentialHeaders(connection)
  const response = await fetch(`${connection.baseUrl}/v1/memory/export`, { headers }).catch(
    toUnavailable,
  )
  if (!response.ok || !response.body) {
    const { error = 'refused', hint } = (await response
      .json()
      .catch(() => ({}))) as Partial<ErrorBody>
    throw new Refusal('upstream', `${response.status}: ${error}`, hint)
  }
  try {
    for await (const { bytes } of splitLines(response.body, unlimited))
      yield JSON.parse(Buffer.from(bytes).toString('utf8')) as ExportLine
  } catch (error) {
    if (error instanceof TypeError) toUnavailable(error)
    throw error
  }
}

function toUnavailable(error: unknown): never {
  const { cause, message } = error as Error
  const why = cause instanceof Error && cause.message ? cause.message : message
  throw new Refusal('unavailable', `No answer: ${why}`)
}
