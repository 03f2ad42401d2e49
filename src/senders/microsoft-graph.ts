import { plain, queryValue, type Handshake } from '../core/handshake.ts';
import { textSecret } from '../core/secret.ts';
import type { Sender } from '../core/sender.ts';
import { hour, inEach, namedIfPossible, pointer, second } from './rules.ts';

/** https://learn.microsoft.com/graph/change-notifications-delivery-webhooks (notificationUrl validation) */
const handshake: Handshake = {
  when: 'open',
  methods: [],
  title: '`POST` with `validationToken`, before the subscription exists; the token is echoed as plain text',
  answer({ method, target }) {
    const token = queryValue(target, 'validationToken');
    return method === 'POST' && token !== undefined ? plain(token) : undefined;
  },
};

const notifications = inEach('/value', ...['/subscriptionId', '/changeType', '/resource', '/resourceData/@odata.etag']);

export const microsoftGraph: Sender = {
  name: 'microsoft-graph',
  title: 'Microsoft Graph change notifications',
  signature: { scheme: 'token', from: { list: pointer('/value'), each: pointer('/clientState') } },
  secret: 'the clientState of the subscription',
  decodeSecret: textSecret,
  // Only Outlook's have an etag; the id of a notification is optional.
  identity: namedIfPossible({
    from: 'first-of',
    ways: [[notifications], [inEach('/value', '/subscriptionId', '/id')]],
  }),
  elements: notifications,
  notCovered: ['anything: clientState proves that the sender knows it, and no more'],
  handshake,
  successStatus: 202,
  timeLimitMs: 3 * second,
  retryHorizonMs: 4 * hour,
  lastRetryMs: 4 * hour,
  setup: [
    'Create the subscription with the URL as notificationUrl and a clientState of your own, up to 128 characters.',
  ],
  cautions: [
    'Nothing is signed: who has seen one notification knows the clientState and can send anything. Fetch the resource.',
    'A notification is named by subscription, change, resource and etag; without an etag, which only Outlook has, by its id. One without either (drives, lifecycle) is not named by anything: it is forwarded without a claim, because the same words mean another change each time.',
    'A delivery carries several notifications and is named by all of them, unless the route says elements: each; each must have the clientState.',
    'A slow endpoint (more than 10 % of the answers) is served late, and then not at all.',
  ],
  unverified: [
    'The time limit: texts of different years say 3 and 10 seconds.',
    'That an etag names one change of a resource.',
    'That a notification keeps its id when it is sent again: if not, it is forwarded again.',
  ],
  sources: [
    'https://learn.microsoft.com/graph/change-notifications-delivery-webhooks',
    'https://learn.microsoft.com/graph/api/resources/changenotification',
    'https://learn.microsoft.com/graph/api/resources/resourcedata',
  ],
};
