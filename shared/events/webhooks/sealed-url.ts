import { Refusal } from '#shared/core/errors.ts'
import type { Seal } from '#shared/core/seal.ts'
import type { Postgres } from '#shared/storage/postgres/connect.ts'
import { listUnsealedUrls, replaceUrl } from '#shared/events/webhooks/webhooks.postgres.ts'

/** The path or query of an address often is the receiver's secret: it is stored sealed to its row. */
const sealContext = (webhook: string): string => `webhooks.url:${webhook}`

export const sealUrl = (seal: Seal, webhook: string, url: string): string =>
  seal.seal(url, sealContext(webhook))

/** Sealed texts begin so; addresses begin with `http`. */
const sealedPrefix = 'v1.'

/**
 * @param stored sealed, or in clear as an earlier release has written it
 * @throws Refusal `conflict` when the master key that sealed it is not configured any more.
 */
export function openUrl(seal: Seal, webhook: string, stored: string): string {
  if (!stored.startsWith(sealedPrefix)) return stored
  try {
    return seal.open(stored, sealContext(webhook))
  } catch {
    throw new Refusal(
      'conflict',
      `The address of webhook ${webhook} can no longer be opened`,
      'The operator has dropped the master key it was sealed with. PATCH the webhook with its url, or delete it',
    )
  }
}

/** Whether a stored address is this one. */
export function isSameUrl(seal: Seal, webhook: string, stored: string, url: string): boolean {
  try {
    return openUrl(seal, webhook, stored) === url
  } catch {
    return false
  }
}

const unsealedMax = 500

/** Seals addresses that an earlier release has written in clear. @returns how many were. */
export async function sealStoredUrls({
  postgres: { query },
  seal,
}: {
  postgres: Pick<Postgres, 'query'>
  seal: Seal
}): Promise<number> {
  const rows = await listUnsealedUrls(query, sealedPrefix, unsealedMax)
  for (const { id, storedUrl } of rows) {
    await replaceUrl(query, id, storedUrl, sealUrl(seal, id, storedUrl))
  }
  return rows.length
}
