import { Refusal } from '#shared/core/errors.ts'
import type { Seal } from '#shared/core/seal.ts'

/** The path or query of an address often is the receiver's secret: it is stored sealed to its row. */
const sealContext = (webhook: string): string => `webhooks.url:${webhook}`

export const sealUrl = (seal: Seal, webhook: string, url: string): string =>
  seal.seal(url, sealContext(webhook))

/** @throws Refusal `conflict` when the master key that sealed the address is no longer configured. */
export function openUrl(seal: Seal, webhook: string, stored: string): string {
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
