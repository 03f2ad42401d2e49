/** Every sender preset, by the name that configuration uses. */
import type { Sender } from '../core/sender.ts';
import { adyen, adyenPlatform } from './adyen.ts';
import { awsSns } from './aws-sns.ts';
import { bitbucket } from './bitbucket.ts';
import { braintree } from './braintree.ts';
import { calendly } from './calendly.ts';
import { checkoutCom } from './checkout-com.ts';
import { coinbaseCommerce } from './coinbase-commerce.ts';
import { discord, discordEvents } from './discord.ts';
import { docusign } from './docusign.ts';
import { dropbox } from './dropbox.ts';
import { github } from './github.ts';
import { gitlab, gitlabSigningToken } from './gitlab.ts';
import { hubspot, hubspotV3 } from './hubspot.ts';
import { intercom } from './intercom.ts';
import { klarna } from './klarna.ts';
import { line } from './line.ts';
import { linear } from './linear.ts';
import { mailgun, mailgunOptimizeAlerts } from './mailgun.ts';
import { meta } from './meta.ts';
import { microsoftGraph } from './microsoft-graph.ts';
import { mollie, mollieNextgen } from './mollie.ts';
import { notion } from './notion.ts';
import { paddle } from './paddle.ts';
import { paypal } from './paypal.ts';
import { plaid } from './plaid.ts';
import { razorpay } from './razorpay.ts';
import { sendgrid } from './sendgrid.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { square } from './square.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { clerk, svix } from './svix.ts';
import { twilio } from './twilio.ts';
import { twitterX } from './twitter-x.ts';
import { typeform } from './typeform.ts';
import { woocommerce } from './woocommerce.ts';
import { zoom } from './zoom.ts';

const all: readonly Sender[] = [
  ...[adyen, adyenPlatform, awsSns, bitbucket, braintree, calendly, checkoutCom, clerk, coinbaseCommerce],
  ...[discord, discordEvents, docusign, dropbox, github, gitlab, gitlabSigningToken, hubspot, hubspotV3, intercom],
  ...[klarna, line, linear, mailgun, mailgunOptimizeAlerts, meta, microsoftGraph, mollie, mollieNextgen, notion],
  ...[paddle, paypal, plaid, razorpay, sendgrid, shopify, slack, square, standardWebhooks, stripe, svix],
  ...[twilio, twitterX, typeform, woocommerce, zoom],
];

export const senders: ReadonlyMap<string, Sender> = new Map(all.map((sender) => [sender.name, sender]));
