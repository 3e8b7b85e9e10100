import { useState } from 'preact/hooks'
import { useQuery, useAction } from '#api/console/app/use-query.ts'
import { call } from '#api/console/app/api-call.ts'
import { html, renderComponent, type View } from '#api/console/app/html.ts'
import { confirmDialog } from '#api/console/app/parts/confirm.ts'
import { dialogForm } from '#api/console/app/parts/dialog.ts'
import { selectField, textField } from '#api/console/app/parts/fields.ts'
import { queryView } from '#api/console/app/parts/query-view.ts'
import { showToast } from '#api/console/app/toasts.ts'
import { formatShortDay } from '#api/console/app/format.ts'

/** The account's keys for model providers: stored sealed, and never displayed again. */
export function ProviderKeys(): View {
  const [adding, setAdding] = useState(false)
  const [removing, setRemoving] = useState<string>()
  const query = useQuery(signal => call('GET /v1/account/provider-keys', {}, signal), [])
  return html`<div class="panel stack">
    ${queryView(query, 'provider keys', ({ provider_keys: keys }) =>
      keys.length === 0
        ? html`<p class="quiet">The account has none: model calls bring their own.</p>`
        : html`<ul class="plain rows">
            ${keys.map(
              ({ provider, masked_key, updated_at }) =>
                html`<li key=${provider} class="row">
                  <div class="row-main">
                    <p class="row-title">${provider} <code>${masked_key}</code></p>
                    <p class="quiet">Since ${formatShortDay(updated_at)}</p>
                  </div>
                  <button
                    type="button"
                    class="button"
                    aria-label=${`Forget the key for ${provider}`}
                    onClick=${() => setRemoving(provider)}
                  >
                    Forget
                  </button>
                </li>`,
            )}
          </ul>`,
    )}
    <div class="actions">
      <button type="button" class="button" onClick=${() => setAdding(true)}>
        Add a provider key
      </button>
    </div>
    ${
      adding &&
      renderComponent(AddForm, {
        providers: query.answer?.providers ?? [],
        onClose: () => setAdding(false),
        onAdded: query.refetch,
      })
    }
    ${
      removing &&
      confirmDialog({
        title: `Forget the key for ${removing}?`,
        message: html`<p>Model calls of every Memory Key of the account stop using it at once.</p>`,
        verb: 'Forget',
        action: async () => {
          await call('DELETE /v1/account/provider-keys/:provider', {
            params: { provider: removing },
          })
          showToast('The key is forgotten.')
          query.refetch()
        },
        onClose: () => setRemoving(undefined),
      })
    }
  </div>`
}

type AddProps = { providers: readonly string[]; onClose: () => void; onAdded: () => void }

function AddForm({ providers, onClose, onAdded }: AddProps): View {
  const [provider, setProvider] = useState('openai')
  const [key, setKey] = useState('')
  const actionState = useAction()
  return dialogForm({
    title: 'Add a provider key',
    verb: 'Save',
    actionState,
    onClose,
    act: async () => {
      const request = { params: { provider }, body: { key: key.trim() } }
      await call('PUT /v1/account/provider-keys/:provider', request)
      showToast('The key is kept.')
      onAdded()
    },
    fields: html`<div class="stack">
      ${selectField({
        label: 'Provider',
        value: provider,
        onValue: setProvider,
        choices: providers.map(each => [each, each] as const),
      })}
      ${textField({
        label: 'Key',
        type: 'password',
        value: key,
        onValue: setKey,
        required: true,
        autocomplete: 'off',
        hint: 'It takes the place of the one before.',
      })}
    </div>`,
  })
}
