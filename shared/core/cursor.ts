import { createHmac, timingSafeEqual } from 'node:crypto'
import { Refusal } from '#shared/core/errors.ts'

/** Signed cursors: a client can only send back a position that it was given. */
export type CursorCodec = {
  /**
   * @param position where the next page begins
   * @param bound everything the page depends on: key, route, filters, epoch
   */
  write(position: unknown, bound: readonly unknown[]): string
  /** @throws Refusal `invalid` for anything that was not written with the same `bound`. */
  read(cursor: string, bound: readonly unknown[]): unknown
}

const signatureBytes = 16

export function createCursorCodec(secret: string): CursorCodec {
  const signatureOf = (payload: string, boundTo: readonly unknown[]): Buffer =>
    createHmac('sha256', secret)
      .update(`cursor\n${payload}\n${JSON.stringify(boundTo)}`)
      .digest()
      .subarray(0, signatureBytes)

  return {
    write(position, boundTo) {
      const payload = Buffer.from(JSON.stringify(position)).toString('base64url')
      return `${payload}.${signatureOf(payload, boundTo).toString('base64url')}`
    },

    read(cursor, boundTo) {
      const [payload = '', signature = '', ...rest] = cursor.split('.')
      const provided = Buffer.from(signature, 'base64url')
      const valid =
        rest.length === 0 &&
        provided.length === signatureBytes &&
        // Base64 spells the same bytes in several ways; only our own spelling is valid.
        provided.toString('base64url') === signature &&
        timingSafeEqual(provided, signatureOf(payload, boundTo))
      if (valid) return JSON.parse(Buffer.from(payload, 'base64url').toString()) as unknown
      throw new Refusal(
        'invalid',
        'cursor is not one of this list',
        'Send next_cursor of the page before, with the same key and filters',
      )
    },
  }
}
