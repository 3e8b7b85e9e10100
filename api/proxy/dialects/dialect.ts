import type { ProxyRequest } from '#api/proxy/dialects/request.ts'
import type { ReplyParser } from '#api/proxy/dialects/reply.ts'
import type { ApiFormat } from '#shared/core/provider-registry.ts'
import type { Shape } from '#shared/core/shape.ts'

export type { BodySwitches } from '#api/proxy/dialects/members.ts'
export type { Reply, ReplyParser } from '#api/proxy/dialects/reply.ts'
export type { ProxyRequest, RequestChange } from '#api/proxy/dialects/request.ts'
export type { EarlierTurn, UserTurn } from '#api/proxy/dialects/turns.ts'

/** Reads requests and responses of one API format. */
export type Dialect = {
  apiFormat: ApiFormat
  /** What the contract requires of a body. */
  bodyShape: Shape<unknown>
  /**
   * Reads a request. Members that memory cannot read are skipped: the provider validates them.
   *
   * @throws Refusal `invalid` for broken JSON, a body that is no object, more than 10,000 levels, and for
   *   switches of a wrong type.
   */
  parseRequest(body: Buffer): ProxyRequest
  /** As `parseRequest`, in slices of the event loop. */
  parseInSlices(body: Buffer): Promise<ProxyRequest>
  /** @param answer the provider's status and `content-type`, which is empty when it sent none */
  createReplyParser(answer: { status: number; contentType: string }): ReplyParser
}
