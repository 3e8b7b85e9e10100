import type { ReceiptKey } from '#api/contract/generated/types.ts'

const fromBase64Url = (text: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), character =>
    character.codePointAt(0)!,
  )

const decodePart = (text: string): unknown =>
  JSON.parse(new TextDecoder().decode(fromBase64Url(text)))

/** How much was erased, by kind in words, most first. */
export function erasedCounts(receipt: string): [kind: string, count: number][] {
  const { erased } = decodePart(receipt.split('.')[1]!) as { erased: Record<string, number> }
  return Object.entries(erased)
    .map(([kind, count]): [string, number] => [kind.replaceAll('_', ' '), count])
    .toSorted(([, one], [, other]) => other - one)
}

/** Whether one of the keys has signed a receipt; null where the browser cannot tell, as without https. */
export async function isSigned(
  receipt: string,
  keys: readonly ReceiptKey[],
): Promise<boolean | null> {
  const [head = '', body = '', signature = ''] = receipt.split('.')
  const { kid } = decodePart(head) as { kid?: string }
  const jwk = keys.find(key => key.kid === kid)
  if (!jwk) return false
  // Undefined where the page is not served by https or from this machine.
  const subtle = (crypto as { subtle?: SubtleCrypto }).subtle
  try {
    const { kty, crv, x } = jwk
    const key = await subtle!.importKey('jwk', { kty, crv, x }, 'Ed25519', false, ['verify'])
    const signed = new TextEncoder().encode(`${head}.${body}`)
    return await subtle!.verify('Ed25519', key, fromBase64Url(signature), signed)
  } catch {
    return null
  }
}
