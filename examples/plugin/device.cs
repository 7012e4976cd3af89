using System.Collections.Generic;
using System.Linq;
using Pulumi;
using Gatehouse = Pulumi.Gatehouse;

return await Deployment.RunAsync(() => 
{
    var gate = new Gatehouse.Device("gate", new()
    {
        Device = "02:00:00:00:0a:01",
        Name = "gate",
        Status = Gatehouse.DeviceStatus.Accepted,
    });

});

