using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var audited = new Gatehouse.DeviceTagAttachment("audited", new()
    {
        Device = "web-01",
        Tag = "audited",
    });

});

