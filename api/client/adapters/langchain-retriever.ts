import { Document } from '@langchain/core/documents'
import { BaseRetriever, type BaseRetrieverInput } from '@langchain/core/retrievers'
import type { EndpointRequest, EndpointResponse, VaultClient } from '../client.ts'

type SearchBody = Exclude<EndpointRequest<'POST /v1/memory/search'>['body'], string | undefined>
type FoundMemory = EndpointResponse<'POST /v1/memory/search'>['memories'][number]

/** What of the vault is searched, and how much is returned. */
export type VaultRetrieverOptions = BaseRetrieverInput & {
  vault: VaultClient
  /** The most documents; 8 when missing. */
  limit?: number
  /** Below this relevance nothing is returned. */
  minRelevance?: number
  /** A session in place of the core of the vault. */
  sessionId?: string
  /** Only memories with this metadata. (`metadata` is LangChain's own, about the run.) */
  filter?: NonNullable<SearchBody['metadata']>
  tiers?: NonNullable<SearchBody['tiers']>
}

const limitDefault = 8

/** A retriever of LangChain over a vault: one search for each query, the best memory first. */
export class VaultRetriever extends BaseRetriever<Omit<FoundMemory, 'content'>> {
  static override lc_name(): string {
    return 'VaultRetriever'
  }

  lc_namespace = ['memory_vault', 'retrievers']
  readonly #vault: VaultClient
  readonly #search: Omit<SearchBody, 'query'>

  constructor({
    vault,
    limit = limitDefault,
    minRelevance,
    sessionId,
    filter,
    tiers,
    ...fields
  }: VaultRetrieverOptions) {
    super(fields)
    this.#vault = vault
    this.#search = {
      limit,
      ...(minRelevance !== undefined && { min_relevance: minRelevance }),
      ...(sessionId !== undefined && { session_id: sessionId }),
      ...(filter && { metadata: filter }),
      ...(tiers && { tiers }),
    }
  }

  /** @throws VaultError when the service refuses the query. */
  override async _getRelevantDocuments(
    query: string,
  ): Promise<Document<Omit<FoundMemory, 'content'>>[]> {
    const { memories } = await this.#vault.call('POST /v1/memory/search', {
      body: { query, ...this.#search },
    })
    return memories.map(
      ({ content, ...metadata }) =>
        new Document({ pageContent: content, id: metadata.id, metadata }),
    )
  }
}
