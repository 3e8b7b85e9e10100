import type { Router } from '@koa/router'
import { DrawImagesBody, EmbedBody, SpeakBody, TranscribeBody } from '#api/contract/contract.ts'
import { passOn, type Passage } from '#api/proxy/pass-on.ts'
import type { Backend } from '#shared/backend.ts'

/** Four paths that are forwarded as they are: under `/v1` here, and under the provider's own there. */
const passages: Passage[] = [
  { path: '/audio/transcriptions', shape: TranscribeBody, form: true },
  { path: '/audio/speech', shape: SpeakBody, form: false },
  { path: '/images/generations', shape: DrawImagesBody, form: false },
  { path: '/embeddings', shape: EmbedBody, form: false },
]

export function passThrough(router: Router, backend: Backend): void {
  for (const passage of passages) {
    router.post(`/v1${passage.path}`, ctx => passOn(ctx, backend, passage))
  }
}
