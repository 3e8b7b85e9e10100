import type { Codec } from '#shared/search/vectors/codec.ts'
import { createFloat32Codec } from '#shared/search/vectors/float32-codec.ts'
import { createInt8Codec } from '#shared/search/vectors/int8-codec.ts'

export type Precision = 'int8' | 'float32'

const codecs = new Map<string, Codec>()

/** The codec of a space of vectors; asked again, the same one. */
export function codecOf(dimension: number, precision: Precision): Codec {
  const name = `${precision} ${dimension}`
  const known = codecs.get(name)
  if (known) return known

  const codec = precision === 'int8' ? createInt8Codec(dimension) : createFloat32Codec(dimension)
  codecs.set(name, codec)
  return codec
}
