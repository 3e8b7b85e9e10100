import { chunkBytesMax, splitText } from '#shared/models/split-text.ts'

/** OpenAI accepts 2,048 inputs; smaller batches are cheaper to repeat. */
const inputsMax = 256
/** OpenAI accepts 300,000 tokens, and no token is shorter than a byte. */
const bytesMax = 300_000
/** After this time refusals are forgotten: a server may be set up in another way. */
const keptMs = 3_600_000

/**
 * What one model takes in a call, by its answers so far. A batch with no more inputs and bytes than accepted ones is
 * accepted again. A refusal shows that one of the two was too much; where both could be, the inputs are lowered first.
 */
export class BatchLimits {
  /** The largest accepted batch, in inputs and in bytes, and the largest input in bytes. */
  readonly #accepted = { inputs: 1, bytes: 0, input: 0 }
  #refused: { inputs: number; bytes: number }[] = []
  /** Bytes of the smallest text that was refused alone and accepted in parts. */
  #refusedInput = Infinity
  #keptUntil = 0

  /** The parts of a text to send: the text itself where it may be accepted, otherwise parts that were accepted before. */
  split(text: string): string[] {
    if (Date.now() > this.#keptUntil) {
      this.#refused = []
      this.#refusedInput = Infinity
    }
    const bytes = Buffer.byteLength(text)
    const mayBeTaken = bytes < this.#refusedInput || bytes <= this.#accepted.input
    const partBytes = mayBeTaken ? chunkBytesMax : Math.floor(this.#refusedInput / 2)
    return splitText(text, Math.min(chunkBytesMax, partBytes))
  }

  accept(batch: readonly string[]): void {
    const accepted = this.#accepted
    accepted.inputs = Math.max(accepted.inputs, batch.length)
    accepted.bytes = Math.max(accepted.bytes, bytesOf(batch))
    accepted.input = Math.max(accepted.input, ...batch.map(text => Buffer.byteLength(text)))
  }

  /** Notes a refused batch whose inputs were accepted in smaller ones. */
  refuse(batch: readonly string[]): void {
    this.#keptUntil = Date.now() + keptMs
    const refused = { inputs: batch.length, bytes: bytesOf(batch) }
    const accepted = this.#accepted
    if (refused.inputs <= accepted.inputs && refused.bytes <= accepted.bytes) {
      // The server takes less than before.
      this.#refused = []
      Object.assign(accepted, { inputs: 1, bytes: 0 })
    }
    this.#refused.push(refused)
  }

  /** Notes a text that was refused alone and accepted in parts. */
  refuseInput(text: string): void {
    this.#keptUntil = Date.now() + keptMs
    this.#refusedInput = Math.min(this.#refusedInput, Buffer.byteLength(text))
  }

  /**
   * Plans batches that should be accepted, as indices of the inputs. Where texts have been refused alone, a longer one
   * than all accepted ones goes alone.
   */
  plan(inputs: readonly string[]): number[][] {
    const max = this.#batchMax()
    const mayBeLong = this.#refusedInput === Infinity
    const batches: number[][] = []
    let open: number[] = []
    let bytes = 0
    for (const [index, input] of inputs.entries()) {
      const size = Buffer.byteLength(input)
      if (size >= this.#refusedInput || (size > this.#accepted.input && !mayBeLong)) {
        batches.push([index])
        continue
      }
      if (open.length === 0 || open.length >= max.inputs || bytes + size > max.bytes) {
        batches.push((open = []))
        bytes = 0
      }
      open.push(index)
      bytes += size
    }
    return batches
  }

  #batchMax(): { inputs: number; bytes: number } {
    const { inputs, bytes } = this.#accepted
    // No more inputs than were accepted: the bytes were too many.
    const tooManyBytes = this.#refused.filter(batch => batch.inputs <= inputs)
    const refusedBytes = Math.min(Infinity, ...tooManyBytes.map(batch => batch.bytes))
    // Fewer bytes than that: the inputs were too many.
    const tooManyInputs = this.#refused.filter(batch => batch.bytes < refusedBytes)
    const refusedInputs = Math.min(Infinity, ...tooManyInputs.map(batch => batch.inputs))
    return {
      inputs: Math.min(inputsMax, Math.max(inputs, Math.floor(refusedInputs / 2))),
      bytes: Math.min(bytesMax, Math.max(bytes, Math.floor(refusedBytes / 2))),
    }
  }
}

const bytesOf = (batch: readonly string[]): number =>
  batch.reduce((sum, text) => sum + Buffer.byteLength(text), 0)

/** Bounds a gateway that takes any name for a model. */
const modelsMax = 1_000
const limitsByModel = new Map<string, BatchLimits>()

/** The limits of a model at an address, as this process has learnt them. */
export function batchLimitsOf(model: string, url: string): BatchLimits {
  const key = `${model}\n${url}`
  const known = limitsByModel.get(key)
  if (known) return known
  if (limitsByModel.size >= modelsMax) limitsByModel.clear()
  const limits = new BatchLimits()
  limitsByModel.set(key, limits)
  return limits
}
