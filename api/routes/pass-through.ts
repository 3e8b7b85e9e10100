import type { Router } from '@koa/router'
import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import { proxyPassthrough, type PassthroughRoute } from '#api/proxy/pass-through.ts'
import type { ApiBackend } from '#api/edge/api-backend.ts'

/** Paths that are forwarded unchanged: below `/v1` here, below the provider's base path there. */
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
