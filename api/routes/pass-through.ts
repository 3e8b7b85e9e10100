import type { Router } from '@koa/router'
import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import { proxyPassthrough, type PassthroughRoute } from '#api/proxy/pass-through.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/** Four paths that are forwarded as they are: under `/v1` here, and under the provider's own there. */
const passthroughRoutes: PassthroughRoute[] = [
  { path: '/audio/transcriptions', shape: TranscribeBody, isForm: true },
  { path: '/audio/speech', shape: SpeakBody, isForm: false },
  { path: '/images/generations', shape: DrawImagesBody, isForm: false },
  { path: '/embeddings', shape: EmbedBody, isForm: false },
]

export function passThrough(router: Router, backend: ApiBackend): void {
  for (const route of passthroughRoutes) {
    router.post(`/v1${route.path}`, ctx => proxyPassthrough(ctx, backend, route))
  }
}
